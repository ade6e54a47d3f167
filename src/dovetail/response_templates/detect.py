"""Which dialect a model speaks: by its response template, its chat template, or its vocabulary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dovetail.dialects import Dialect
from dovetail.dialects.families import FAMILIES
from dovetail.engine import Vocabulary
from dovetail.errors import DialectError, InputError, ResponseTemplateError, TemplateError
from dovetail.response_templates.template import ResponseTemplate
from dovetail.templates.analyze import analysis_of
from dovetail.typing import TemplateSource

if TYPE_CHECKING:
    from dovetail.templates.analysis.evidence import Analysis

_NO_TEMPLATE = "the tokenizer has no response template"
_MIN_TOKENS = 2  # of a family, below which a vocabulary says nothing


@dataclass(frozen=True, slots=True)
class Detection:
    """A dialect and how it was found; `response_template` reads outputs where the model has one of its own."""

    dialect: Dialect
    how: Literal["response_template", "chat_template", "vocabulary"]
    why: str
    response_template: ResponseTemplate | None = None
    analysis: Analysis | None = None


def detect(source: TemplateSource | Vocabulary, bos_token: str = "", eos_token: str = "") -> Detection:
    """The dialect of a chat template, a tokenizer, its folder, a GGUF model or a vocabulary, and why it is that one.

    A response template comes first: its author says how outputs are read. Then the chat template is analyzed; without
    one, the built-in dialect whose special tokens are all in the vocabulary is taken.
    """
    own = _response_template(source)
    try:
        if isinstance(source, Vocabulary):
            raise TemplateError("a vocabulary holds no chat template")
        analysis: Analysis | None = analysis_of(source, bos_token, eos_token)
    except TemplateError as error:
        analysis, problem = None, error
    if analysis is not None:
        same = f", the same as the built-in {analysis.same_as}" if analysis.same_as else ""
        proof = "; ".join(analysis.notes) or "what the template renders is read back equal"
        why = f"the chat template was analyzed{same}: {proof}"
        if own is not None:
            why = f"the tokenizer has a response template, by which outputs are read; {why}"
        return Detection(analysis.dialect, "response_template" if own else "chat_template", why, own, analysis)
    fitting = _by_vocabulary(source)
    if not fitting:
        raise DialectError(
            f"nothing tells how this model talks: {problem.problem}", problem.path, "name a dialect of dt.dialects"
        )
    family, *others = fitting
    why = f"there is no chat template; the vocabulary has all {len(family.special_tokens)} markers of {family.name}"
    if others:
        why += f", and no fewer of {', '.join(other.name for other in others)}"
    return Detection(family, "response_template" if own else "vocabulary", why, own)


def _response_template(source: TemplateSource | Vocabulary) -> ResponseTemplate | None:
    """The response template of a tokenizer or its folder, if it has one."""
    if isinstance(source, str | os.PathLike):
        if not _is_path(source) or not (Path(source) / "tokenizer_config.json").is_file():
            return None
        source = Path(source)
    try:
        return ResponseTemplate.of_tokenizer(source)
    except ResponseTemplateError as error:
        if error.problem == _NO_TEMPLATE:
            return None
        raise


def _is_path(source: Any) -> bool:
    text = os.fspath(source)
    return "{" not in text and "\n" not in text and len(text) < 4096 and "\0" not in text


def _by_vocabulary(source: TemplateSource | Vocabulary) -> list[Dialect]:
    """The built-in dialects with most markers among the tokens of the vocabulary; none of their own may be missing."""
    known = _tokens(source)
    scores = {
        family: len(family.special_tokens)
        + sum(token in family.turn.start or token == family.turn.end for token in known)
        for family in FAMILIES
        if len(family.special_tokens) >= _MIN_TOKENS and known.issuperset(family.special_tokens)
    }
    best = max(scores.values(), default=0)
    return [family for family, score in scores.items() if score == best]


def _tokens(source: TemplateSource | Vocabulary) -> set[str]:
    if isinstance(source, Vocabulary):
        return set(source.special_tokens)
    added = getattr(getattr(source, "tokenizer", source), "added_tokens_decoder", None)
    if isinstance(added, dict):
        return {str(getattr(token, "content", token)) for token in added.values()}
    if not isinstance(source, str | os.PathLike) or not _is_path(source):
        return set()
    try:
        path = Path(source)
        loaded = Vocabulary.from_gguf(path) if path.suffix == ".gguf" else Vocabulary.from_huggingface(path)
    except InputError:
        return set()
    return set(loaded.special_tokens)
