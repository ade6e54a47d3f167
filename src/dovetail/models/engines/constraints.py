"""The format of a turn in the languages of engines, and what they cannot hold of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from dovetail.errors import ExportError, InputError
from dovetail.formats import Format, GrammarFormat, JsonSchemaFormat, SequenceFormat, TriggeredTagsFormat
from dovetail.formats.models import FormatModel, OptionalFormat
from dovetail.grammar import export, ir
from dovetail.grammar.lower import rule_of
from dovetail.models.engines.schemas import is_common

MAX_GRAMMAR = 256 << 10  # characters of one schema as a grammar, beyond which an engine takes seconds to read it

# White space in a row in JSON that is to be tidy; small models that are lost go on with it forever.
TIDY_SPACE = 16

Spelling = Callable[[], Mapping[str, Any]]


class Unheld(NamedTuple):
    """What an engine does not hold: a schema, or the whole format where there is none, and why."""

    schema: Any
    why: str


class Written(NamedTuple):
    """A constraint in the language of one kind of engine, most wanted spelling first, and what is lost in it."""

    spellings: tuple[Spelling, ...]
    unheld: tuple[Unheld, ...] = ()


def write(kind: str, made: Format, prefix: str) -> Written:
    """The constraint for one kind of engine; `prefix` is what of the output the prompt holds already.

    The first spelling is made at once, because it tells what is not held. The others are for engines of which masks
    are made by something else than what the engine comes with.
    """
    writer = {"vllm": _vllm, "sglang": _sglang, "llama": _llama}[kind]
    try:
        written = writer(made, prefix)
        return written._replace(unheld=(*written.unheld, *_repeating(made)))
    except ExportError as error:
        return Written((), (Unheld(None, f"{error.problem} ({error.path})" if error.path else error.problem),))


def _vllm(made: Format, prefix: str) -> Written:
    def grammar(write: Callable[..., str]) -> dict[str, Any]:
        return {"structured_outputs": {"grammar": write(made, prefix=prefix)}}

    ebnf, lark = partial(grammar, export.ebnf), partial(grammar, export.lark)
    if prefix:
        return Written((_known(ebnf()), lark))
    tag, unheld = _tag(made)
    return Written((_known({"structured_outputs": {"structural_tag": json.dumps(tag)}}), ebnf, lark), unheld)


def _sglang(made: Format, prefix: str) -> Written:
    def ebnf() -> dict[str, Any]:
        return {"ebnf": export.ebnf(made, prefix=prefix)}

    if prefix:
        return Written((_known(ebnf()),))
    tag, unheld = _tag(made)
    return Written((_known({"response_format": tag}), ebnf), unheld)


def _llama(made: Format, prefix: str) -> Written:
    free = None if prefix else _free_part(made)
    if free is not None:
        try:
            lazy = export.gbnf(free, lazy=True)
        except ExportError:
            pass  # what may come before a call is more than text
        else:
            return Written((_known(_of_gbnf(lazy)),))
    return Written((_known(_of_gbnf(export.gbnf(made, prefix=prefix))),))


def _of_gbnf(made: export.Gbnf) -> dict[str, Any]:
    return {
        "grammar": made.grammar,
        "grammar_triggers": made.triggers,
        "preserved_tokens": made.preserved_tokens,
    }


def _free_part(made: FormatModel) -> TriggeredTagsFormat | None:
    """The part of a turn in which text is free until a call begins, behind reasoning that nobody has to hold."""
    if isinstance(made, SequenceFormat) and all(map(_is_reasoning, made.elements[:-1])):
        return _free_part(made.elements[-1])
    return made if isinstance(made, TriggeredTagsFormat) and not made.at_least_one else None


def _is_reasoning(made: FormatModel) -> bool:
    written = made.model_dump_json()
    return isinstance(made, OptionalFormat | SequenceFormat) and '"name":"reasoning"' in written


def _known(constraint: Mapping[str, Any]) -> Spelling:
    return lambda: constraint


def _tag(made: Format) -> tuple[dict[str, Any], tuple[Unheld, ...]]:
    """The structural tag of a format; schemas that engines read in their own way are grammars in it."""
    unheld: list[Unheld] = []

    def schema(node: FormatModel) -> FormatModel:
        if not isinstance(node, JsonSchemaFormat):
            return node
        if _is_schema_only(node) and is_common(node.json_schema):
            return _as_schema(node)
        try:
            grammar = export.ebnf(node)
            if len(grammar) <= MAX_GRAMMAR:
                return GrammarFormat(grammar=grammar)
            why = f"as a grammar it has {len(grammar)} characters"
        except InputError as error:
            why = error.problem
        if node.style != "json":
            raise ExportError(why, "/json_schema", "use a simpler schema")
        unheld.append(Unheld(node.json_schema, f"it is held only as far as the engine's own masks do: {why}"))
        return _as_schema(node)

    return export.structural_tag(_mapped(made, schema)), tuple(unheld)


def _is_schema_only(node: JsonSchemaFormat) -> bool:
    """Whether nothing is asked of the JSON but its schema."""
    asked = node.any_order or node.excludes or not node.strict or node.max_whitespace_cnt == 0
    return node.style == "json" and not asked


def _as_schema(node: JsonSchemaFormat) -> JsonSchemaFormat:
    """The schema for the engine's own masks, which read it three times as fast as a grammar (14 ms, not 40)."""
    most = node.max_whitespace_cnt or (TIDY_SPACE if node.tidy else None)
    return JsonSchemaFormat(json_schema=node.json_schema, **({"max_whitespace_cnt": most} if most else {}))


def _repeating(made: FormatModel) -> list[Unheld]:
    """The schemas with objects in which a key may come twice, because no grammar remembers the keys that were there."""
    unheld: list[Unheld] = []

    def look(node: FormatModel) -> FormatModel:
        if isinstance(node, JsonSchemaFormat) and _has_open_keys(node):
            unheld.append(Unheld(node.json_schema, "a key that the schema does not declare may come twice"))
        return node

    _mapped(made, look)
    return unheld


def _has_open_keys(node: JsonSchemaFormat) -> bool:
    try:
        rules = ir.reachable(rule_of(node))
    except InputError:
        return False  # which is told elsewhere
    return any(isinstance(part, ir.NewKey) for rule in rules for part in ir.walk(rule.body))


def _mapped(made: Any, change: Callable[[FormatModel], FormatModel]) -> Any:
    """A format with `change` made to each of its parts that has no parts itself."""
    if isinstance(made, tuple):
        return tuple(_mapped(part, change) for part in made)
    if not isinstance(made, FormatModel):
        return made
    parts = {name: getattr(made, name) for name in made.model_fields_set}
    changed = {name: new for name, part in parts.items() if (new := _mapped(part, change)) is not part and new != part}
    return change(made.model_copy(update=changed) if changed else made)
