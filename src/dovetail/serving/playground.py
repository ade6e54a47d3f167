"""What the playground page asks for: the format of a request, an answer step by step, the check of a template."""

from __future__ import annotations

import html
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, replace
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.engine import Matcher, Vocabulary, compile
from dovetail.errors import InputError
from dovetail.messages import Wire
from dovetail.models import Speaker, Step
from dovetail.parsing import Event
from dovetail.serving import sse
from dovetail.serving.chat import read_chat
from dovetail.serving.constraints import relocated
from dovetail.serving.errors import RequestError
from dovetail.serving.generation import Job, Limits, prepare
from dovetail.serving.models import Models
from dovetail.templates.analysis import analyze_template
from dovetail.templates.checks import check_template

SHOWN_TOKENS = 48
_T = TypeVar("_T")
_MESSAGES = [{"role": "user", "content": "Hello!"}]


def page(models: Models) -> tuple[str, str]:
    """The page, which needs nothing but this server, and the policy that holds it to that."""
    nonce = secrets.token_urlsafe(16)
    text = files("dovetail.serving").joinpath("playground.html").read_text("utf-8")
    options = "".join(f"<option>{html.escape(name)}</option>" for name in models.names)
    text = text.replace("<!--models-->", options).replace("NONCE", nonce)
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'"
    return text, f"{policy}; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"


def job(body: dict[str, Any], models: Models, limits: Limits) -> Job:
    """The job of a chat request, whose `template` takes the place of a model: the speaker talks as it says."""
    template = body.get("template")
    ask = replace(read_chat({"messages": _MESSAGES} | body), top_logprobs=SHOWN_TOKENS)
    model = models.get(ask.model) if not template else Speaker(dialect=_studied(analyze_template, template).dialect)
    return prepare(ask, model, limits)


def described(made: Job) -> Wire:
    """The format of a request as a tree of plain objects, and what the model talks."""
    return {
        "dialect": made.local.dialect.name,
        "prompt": made.local.prompt.text,
        "format": made.local.format.to_dict(),
    }


def checked(body: dict[str, Any]) -> Wire:
    """Which features of a chat template keep the laws."""
    # Not the public `check`, which takes paths too: what is pasted must never name a file of the server.
    report = _studied(check_template, body.get("template"))
    checks = [asdict(one) for one in report.checks]
    return {"passed": report.passed, "same_as": report.analysis.same_as, "checks": checks}


async def steps(made: Job) -> AsyncGenerator[Wire, None]:
    """The answer token by token: what was allowed, what was said, and what it makes of the message."""
    walk = _Walk(made)
    async with aclosing(made.steps(0)) as tokens:
        async for step in tokens:
            yield walk.step(step)
    yield walk.end()


async def encoded(walked: AsyncGenerator[Wire, None]) -> AsyncGenerator[str, None]:
    """Steps as the text of events."""
    async for wire in walked:
        yield sse.encode([wire], named=False)


def _studied(study: Callable[[str], _T], template: Any) -> _T:
    """What a study of a chat template finds; what it finds wrong stands in the template."""
    if not isinstance(template, str) or not template.strip():
        raise RequestError("there is no chat template", "/template", "paste one as text")
    try:
        return study(template)
    except InputError as error:
        raise relocated(error, f"/template, {error.path}" if error.path else "/template") from None


class _Walk:
    """Follows an answer with a matcher and a parser of its own."""

    def __init__(self, made: Job) -> None:
        self._vocabulary = made.local.model.vocabulary
        self._matcher = compile(made.local.format, self._vocabulary).matcher()
        self._matcher.accept_bytes(made.local.prompt.prefix)
        self._parser = made.parser()
        self._mask = np.zeros(self._vocabulary.mask_words, dtype=np.int32)
        self._output = bytearray()
        self._finish: Any = "length"

    def step(self, step: Step) -> Wire:
        """One token."""
        allowed = _allowed(self._matcher, self._mask, self._vocabulary)
        self._matcher.accept(step.token)
        self._output += step.data
        self._finish = step.finish or self._finish
        return {
            "token": _shown(self._vocabulary.token_bytes(step.token)),
            "allowed": len(allowed),
            "some": [_shown(self._vocabulary.token_bytes(token)) for token in self._some(allowed, step)],
            "pieces": self._pieces(self._parser.feed(step.data) if step.data else []),
            "message": self._parser.message.to_openai(("reasoning",)),
        }

    def end(self) -> Wire:
        """The end of the answer."""
        pieces = self._pieces(self._parser.close(self._finish))
        message = self._parser.message
        remarks = [remark.problem for remark in message.diagnostics]
        end = {"finish_reason": message.finish_reason, "diagnostics": remarks}
        return {"pieces": pieces, "message": message.to_openai(("reasoning",)), "end": end}

    def _some(self, allowed: NDArray[np.intp], step: Step) -> list[int]:
        """A few of the allowed tokens: the one that was said, and the likeliest."""
        likely = [token for token, _ in step.top]
        return list(dict.fromkeys([step.token, *likely, *allowed[:SHOWN_TOKENS].tolist()]))[:SHOWN_TOKENS]

    def _pieces(self, events: list[Event]) -> list[Wire]:
        """The regions in which the bytes stand, as they were written."""
        return [
            {
                "region": event.region or "markup",
                "text": self._output[event.start : event.end].decode("utf-8", "replace"),
            }
            for event in events
            if event.kind == "text" and event.end > event.start
        ]


def _allowed(matcher: Matcher, mask: NDArray[np.int32], vocabulary: Vocabulary) -> NDArray[np.intp]:
    matcher.fill_mask(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=vocabulary.size))


def _shown(data: bytes) -> str:
    """A token as text; a byte that is no character by itself as its number."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in data)
