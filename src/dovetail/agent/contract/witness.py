"""Whether a schema can be satisfied: the grammar of its values is made, and a value is drawn from it.

The same compiler that masks the output of a local model says here that no value exists, or finds one. What it cannot
decide within its bounds is left to the run, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.agent.contract.validation import from_json
from dovetail.errors import InputError, LimitError, SchemaError

TRIES = 16
MAX_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known: an example, or that there is none, or with neither that nobody can say."""

    possible: bool | None
    example: Any = None
    why: str = ""


def find_witness(schema: Mapping[str, Any], is_valid: Callable[[Any], bool], seed: int = 0) -> Verdict:
    """Look for a value that `is_valid` accepts among those that the grammar of `schema` allows."""
    # Imported here: a run without a schema never needs the engine.
    from dovetail.formats import load_format
    from dovetail.grammar.lower import lower
    from dovetail.models.shortest import shortest
    from dovetail.models.speaker import Speaker

    easy = _easy(schema, is_valid)
    if easy is not None:
        return Verdict(True, easy)
    form = {"type": "json_schema", "json_schema": schema, "strict": False, "on_inexact": "widen"}
    try:
        grammar = lower(load_format(form))
    except LimitError as error:
        return Verdict(None, why=error.problem)
    except SchemaError as error:
        impossible = error.problem.startswith("no value can satisfy")
        return Verdict(False if impossible else None, why=error.problem)
    except InputError as error:
        return Verdict(None, why=error.problem)
    value = _value(b"".join(piece for piece in shortest(grammar) if isinstance(piece, bytes)))
    if value is not None and is_valid(value):
        return Verdict(True, value)
    speaker = Speaker(seed)
    for attempt in range(TRIES):
        # The first tries are short, because short values are tried fast and often suffice.
        utterance = speaker.speak({"type": "structural_tag", "format": form}, MAX_TOKENS, soft_limit=10 * attempt)
        value = _value(utterance.data) if utterance.complete else None
        if value is not None and is_valid(value):
            return Verdict(True, value)
    return Verdict(None, why=f"none of {TRIES} values that were tried satisfies it")


def _easy(schema: Mapping[str, Any], is_valid: Callable[[Any], bool]) -> Any:
    """A value that the schema names itself, if one is valid."""
    named: list[Any] = [{}, schema.get("const"), schema.get("default")]
    for keyword in ("enum", "examples"):
        values = schema.get(keyword)
        named += values[:TRIES] if isinstance(values, list) else []
    return next((value for value in named if value is not None and is_valid(value)), None)


def _value(data: bytes) -> Any:
    try:
        return from_json(data.decode())
    except (ValueError, RecursionError):
        return None
