"""A model that engines elsewhere serve, as a model of ours: rendered, constrained and read here, generated there."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import CompiledGrammar, Matcher, Vocabulary
from dovetail.errors import InputError, ModelError
from dovetail.formats import Format, load_format
from dovetail.models.engines.constraints import Spelling, Unheld, Written, write
from dovetail.models.engines.pool import Pool, PoolLimits
from dovetail.models.engines.replica import Address
from dovetail.models.engines.wire import Ask, Chunk
from dovetail.models.locate import cached
from dovetail.models.model import DEFAULT_SAMPLING, Constraint, Sampling, Step
from dovetail.models.stops import StopStrings
from dovetail.models.templated_model import TemplatedModel, find_dialect
from dovetail.templates.analyze import marks
from dovetail.templates.render import ChatTemplate
from dovetail.templates.sources import TemplateSource, find_template

_WRITTEN = 256  # constraints that are kept
_MAX_TOKENS = 4096  # of an answer, where nobody says how many
_SILENT = 1024  # tokens at once that say nothing, beyond which an engine has miscounted


class EngineModel(TemplatedModel):
    """A model behind the replicas of a pool.

    The engines make the masks. What they cannot hold of a format `unheld` tells; what they do not do at all is leading
    an answer to its end at a soft limit, and telling probabilities.
    """

    def __init__(
        self,
        pool: Pool,
        name: str,
        dialect: Dialect,
        template: TemplateSource | None,
        vocabulary: Vocabulary | None = None,
        *,
        named: bool = False,
    ) -> None:
        self.pool = pool
        self.vocabulary = vocabulary or _bytes()
        self._template = None
        if template is not None:
            self._template = ChatTemplate(template.text, template.bos_token, template.eos_token, lenient=True)
        super().__init__(name, dialect, named=named)
        self._markers = tuple(marks(self.dialect))
        self._written: OrderedDict[tuple[str, str, str], Written] = OrderedDict()
        self._contexts: OrderedDict[int, int] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, text: str) -> list[int]:
        """The tokens of a text as an engine cuts it; special tokens are recognized, and none are added."""
        tokens = self.pool.tokens(text)
        if tokens.context is not None:
            self.context = tokens.context
        return tokens.ids

    context: int | None = None  # tokens of prompt and answer together, once an engine has told

    def unheld(self, made: Format, prefix: str) -> list[tuple[Any, str]]:
        """What some engine of the pool does not hold: a schema, or None for the whole format, and why."""
        unheld: list[Unheld] = []
        for kind in self.pool.kinds:
            unheld += (one for one in self._constraint(kind, made, prefix).unheld if one not in unheld)
        return [(one.schema, one.why) for one in unheld]

    async def generate(
        self,
        prompt: str | Sequence[int],
        constraint: Constraint | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
        *,
        prefix: str | bytes = "",
    ) -> AsyncGenerator[Step, None]:
        """The steps of one answer; a step has the text of one token, or of several with empty steps before it."""
        if sampling.logprobs is not None:
            raise ModelError("engines are not asked for probabilities", "/logprobs", "leave logprobs out")
        ids = await asyncio.to_thread(self.encode, prompt) if isinstance(prompt, str) else list(prompt)
        spellings = await asyncio.to_thread(self._spellings, constraint, prefix)
        ask = Ask(ids, sampling, self._room(len(ids), sampling.max_tokens), self._markers)
        stops = StopStrings(sampling.stop)
        async with aclosing(_steps(self.pool.chunks(ask, spellings), ask.max_tokens)) as steps:
            async for step in steps:
                data = stops.feed(step.data)
                if stops.matched is not None:
                    yield Step(step.token, data, finish="stop", stopped_by=stops.matched)
                    return
                yield step._replace(data=data + stops.flush() if step.finish else data)

    def close(self) -> None:
        """Close the connections to the engines."""
        self.pool.close()

    def _room(self, prompt: int, wanted: int | None) -> int:
        """How many tokens an answer may have: engines refuse more than their context takes."""
        if self.context is None:
            return wanted or _MAX_TOKENS
        room = self.context - prompt
        if room < 1:
            problem = f"the prompt has {prompt} tokens, and the model takes up to {self.context - 1}"
            raise ModelError(problem, "/messages", "shorten the conversation")
        return room if wanted is None else min(wanted, room)

    def _spellings(self, constraint: Constraint | None, prefix: str | bytes) -> dict[str, tuple[Spelling, ...]]:
        if constraint is None:
            return {}
        if isinstance(constraint, CompiledGrammar | Matcher):
            problem = "a compiled grammar cannot be sent to an engine"
            raise ModelError(problem, "", "give the format from which it was compiled")
        made, begun = load_format(constraint), prefix if isinstance(prefix, str) else prefix.decode()
        return {kind: self._constraint(kind, made, begun).spellings for kind in self.pool.kinds}

    def _constraint(self, kind: str, made: Format, prefix: str) -> Written:
        key = (kind, made.model_dump_json(), prefix)
        with self._lock:
            if key in self._written:
                self._written.move_to_end(key)
                return self._written[key]
        written = write(kind, made, prefix)
        with self._lock:
            self._written[key] = written
            while len(self._written) > _WRITTEN:
                self._written.popitem(last=False)
        return written

    @property
    def _source(self) -> str:
        return self._template.source if self._template else ""

    def _apply_template(self, turns: list[dict[str, Any]], tools: Any, options: Mapping[str, Any]) -> str:
        assert self._template is not None
        return self._template.render(turns, tools, True, **options)


async def _steps(chunks: AsyncGenerator[Chunk, None], limit: int) -> AsyncGenerator[Step, None]:
    """One step for each token that was counted; the last one has the finish.

    llama.cpp says in an event of its own that an answer has reached its limit. The token before waits for it, so that
    no token is counted that was not said.
    """
    count = 0
    last: Step | None = None
    async with aclosing(chunks):
        async for chunk in chunks:
            new = 1 if chunk.total is None else max(chunk.total - count, 0)
            new = min(new, 1 + 8 * len(chunk.text) + _SILENT)
            count += new
            if last is not None and chunk.finish is not None and not new:
                yield last._replace(data=last.data + chunk.text.encode(), finish=chunk.finish)
                return
            if last is not None:
                yield last
                last = None
            for _ in range(new - 1):
                yield Step(0, b"")
            step = Step(0, chunk.text.encode("utf-8", "replace"), finish=chunk.finish)
            if chunk.finish is None and count >= limit:
                last = step
            elif new or chunk.finish or step.data:
                yield step


def connect(
    engines: Sequence[str],
    model: str | Path | None = None,
    *,
    name: str | None = None,
    dialect: Dialect | str | None = None,
    key: str = "",
    limits: PoolLimits | None = None,
) -> EngineModel:
    """The model that engines serve, each named as `vllm=http://host:8000`, `sglang=...` or `llama=...`.

    `model` is where its chat template is: the directory, GGUF file, template or hub name of the model. Without one the
    chat is written with the turn markers of the `dialect`, which then has to be named.
    """
    pool = Pool(map(Address.read, engines), limits, key)
    if model is None:
        if dialect is None:
            fix = "give --model: the directory, file, template or hub name of the model that the engines serve"
            raise ModelError("it is not known how the model behind the engines talks", "--model", fix)
        spoken = dialects.get(dialect) if isinstance(dialect, str) else dialect
        return EngineModel(pool, name or spoken.name, spoken, None, named=True)
    path = Path(model)
    place = path if path.exists() else cached(str(model))
    try:
        template = find_template(place)
    except InputError as error:
        if dialect is None:
            raise ModelError(error.problem, error.path, error.fix) from error
        template = None
    spoken = find_dialect(place, dialect)
    return EngineModel(pool, name or _name(str(model)), spoken, template, _vocabulary(place), named=bool(dialect))


def _name(model: str) -> str:
    """What clients call a model unless they are told otherwise: its hub name, or that of its file or directory."""
    path = Path(model)
    return (path.resolve().name if path.is_dir() else path.stem) if path.exists() else model


def _vocabulary(place: Path) -> Vocabulary | None:
    """The vocabulary beside a chat template, where there is one."""
    try:
        return Vocabulary.from_gguf(place) if place.suffix == ".gguf" else Vocabulary.from_huggingface(place)
    except InputError:
        return None


def _bytes() -> Vocabulary:
    """A vocabulary that can say everything, where that of the model is not at hand."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"<end>"]
    return Vocabulary(tokens, {"<end>": 256}, [256])
