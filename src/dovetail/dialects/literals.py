"""Arguments as the literals of a call syntax, such as Python's: their format by schema, and how values are written.

Properties come in declared order, or in alphabetical order where the syntax sorts. An object that declares properties
has no others here, whatever the schema allows beside them: a key that could be any name might be a declared one over
again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dovetail import formats as f
from dovetail.errors import LimitError, SchemaError
from dovetail.grammar.json_schema.pointers import resolve
from dovetail.messages import to_json
from dovetail.parsing.layouts import Literals

_MAX_DEPTH = 24  # formats nest up to 100 levels, and a schema costs up to four per level
_MAX_NODES = 20_000
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_IGNORED = frozenset(
    "type title description default examples deprecated readOnly writeOnly $schema $id $comment $defs definitions"
    " additionalProperties format".split()
)
_KNOWN = {
    "string": frozenset(("minLength", "maxLength", "pattern")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required")),
}
_SHAPES: dict[str, tuple[Any, str]] = {
    "properties": (dict, "an object"),
    "required": (list, "a list"),
    "items": (dict | bool, "a schema"),
    "anyOf": (list, "a list of schemas"),
    "oneOf": (list, "a list of schemas"),
    "enum": (list, "a list of values"),
    "minItems": (int, "a number"),
    "maxItems": (int, "a number"),
    "minLength": (int, "a number"),
    "maxLength": (int, "a number"),
    "pattern": (str, "a string"),
}
_FILLED = ("anyOf", "oneOf", "enum")
_SCALAR_KEYWORDS = frozenset().union(*(_KNOWN[kind] for kind in ("string", "number")))


def literal_arguments(
    schema: dict[str, Any] | bool, syntax: Literals, path: str, excludes: Sequence[str] = ()
) -> f.Format:
    """The arguments of a call, brackets included; where strings have no escapes, `excludes` are not in them."""
    return _Writer(schema, syntax, excludes).arguments(path)


class _Writer:
    """One schema in one syntax."""

    def __init__(self, schema: dict[str, Any] | bool, syntax: Literals, excludes: Sequence[str]) -> None:
        self.root = schema
        self.syntax = syntax
        self.excludes = list(excludes)
        self.nodes = self.depth = 0

    def arguments(self, path: str) -> f.Format:
        schema, path, refs = self._resolved(self.root, path, ())
        if schema is True or (isinstance(schema, dict) and not schema.get("properties")):
            return self._open(self.syntax.begin, self.syntax.end, bare=not self.syntax.quoted_keys)
        if not isinstance(schema, dict) or "object" not in _types(schema, path):
            raise SchemaError("arguments are an object", path, 'say "type": "object"')
        _check_shapes(schema, path)
        _check_known(schema, "object", path)
        bare = not self.syntax.quoted_keys
        return self._object(schema, path, refs, self.syntax.begin, self.syntax.end, bare=bare)

    def _value(self, schema: Any, path: str, refs: tuple[str, ...]) -> f.Format:
        self.nodes += 1
        self.depth += 1
        if self.nodes > _MAX_NODES or self.depth > _MAX_DEPTH:
            raise LimitError("the schema is too large or too deep to be written as literals", path, "simplify it")
        made = self._described(*self._resolved(schema, path, refs))
        self.depth -= 1
        return made

    def _described(self, schema: Any, path: str, refs: tuple[str, ...]) -> f.Format:
        if schema is True or schema == {}:
            return f.GrammarFormat(grammar=self._any_value())
        if not isinstance(schema, dict):
            raise SchemaError("no value can satisfy this schema", path, "drop the property")
        _check_shapes(schema, path)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                if set(schema) - _IGNORED - {word}:
                    raise SchemaError(f"{word} beside other keywords cannot be written as literals", path, "merge them")
                return _either([self._value(way, f"{path}/{word}/{i}", refs) for i, way in enumerate(schema[word])])
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return _either([_const(text) for value in values for text in self._spellings(value)])
        kinds = _types(schema, path)
        _check_known(schema, kinds[0] if len(kinds) == 1 else "", path)
        return _either([self._typed(kind, schema, path, refs) for kind in kinds])

    def _typed(self, kind: str, schema: dict[str, Any], path: str, refs: tuple[str, ...]) -> f.Format:
        match kind:
            case "string":
                return self._string(schema, path)
            case "integer" | "number":
                own = {key: value for key, value in schema.items() if key in _SCALAR_KEYWORDS}
                return f.JsonSchemaFormat(json_schema=own | {"type": kind})
            case "boolean":
                return _either([_const(word) for word in self._words(("true", "false"))])
            case "null":
                return _either([_const(word) for word in self._words(("null",))])
            case "array":
                return self._array(schema, path, refs)
            case _ if schema.get("properties"):
                return self._object(schema, path, refs, "{", "}", bare=self.syntax.bare_keys)
            case _:
                return self._open("{", "}", bare=self.syntax.bare_keys)

    def _words(self, names: Iterable[str]) -> list[str]:
        """The spellings of these constants: JSON's own are taken everywhere."""
        return list(dict.fromkeys(word for name in names for word in (getattr(self.syntax, name), name)))

    def _string(self, schema: dict[str, Any], path: str) -> f.Format:
        own = {key: value for key, value in schema.items() if key in _KNOWN["string"]}
        if self.syntax.escapes:
            if own:
                return self._limited(own)
            return f.GrammarFormat(grammar="root ::= string\n" + self._strings())
        quote = self.syntax.quotes[0]
        if not own:
            return f.TagFormat(begin=quote, content=f.AnyTextFormat(excludes=self.excludes), end=quote)
        if "pattern" in own:
            if self.excludes:
                raise SchemaError("a pattern beside excluded texts cannot be written", f"{path}/pattern", "drop it")
            # Raw text has no grammar of its own for a pattern: it stands as it is, anchored.
            body = f.RegexFormat(pattern=_anchored(own["pattern"]))
        else:
            high = own.get("maxLength", "")
            never = re.escape("".join(dict.fromkeys(text[0] for text in (quote, *self.excludes))))
            body = f.RegexFormat(pattern=f"[^{never}]{{{own.get('minLength', 0)},{high}}}")
        return _sequence([_const(quote), body, _const(quote)])

    def _limited(self, own: dict[str, Any]) -> f.Format:
        """A string with a pattern or limits: exact between double quotes, without escapes between others."""
        ways: list[f.Format] = []
        for quote in self.syntax.quotes:
            if quote == '"':
                ways.append(f.JsonSchemaFormat(json_schema=own | {"type": "string"}))
            elif "pattern" not in own:
                limits = f"{{{own.get('minLength', 0)},{own.get('maxLength', '')}}}"
                body = f.RegexFormat(pattern=f"[^{quote}\\\\\\n]{limits}")
                ways.append(_sequence([_const(quote), body, _const(quote)]))
        return _either(ways)

    def _array(self, schema: dict[str, Any], path: str, refs: tuple[str, ...]) -> f.Format:
        low, high = schema.get("minItems", 0), schema.get("maxItems", -1)
        item = self._value(schema.get("items", True), f"{path}/items", refs)
        if high == 0:
            return _const("[]")
        more = _sequence([_const(self.syntax.separator), item])
        rest = f.RepeatFormat(min=max(low - 1, 0), max=-1 if high < 0 else high - 1, content=more)
        full = _sequence([_const("["), item, rest, _const("]")])
        return full if low else _either([_const("[]"), full])

    def _object(
        self, schema: dict[str, Any], path: str, refs: tuple[str, ...], begin: str, end: str, bare: bool
    ) -> f.Format:
        required = set(schema.get("required", ()))
        members: list[tuple[f.Format, bool]] = []
        for key, value in _ordered(schema["properties"], self.syntax):
            if value is False:
                continue
            where = f"{path}/properties/{key}"
            head = _either([_const(text) for text in self._keys(key, bare, where)])
            members.append((_sequence([head, self._value(value, where, refs)]), key in required))
        return _sequence([_const(begin), *self._joined(members), _const(end)])

    def _joined(self, members: list[tuple[f.Format, bool]]) -> list[f.Format]:
        """The members in their order, the optional ones or not, with separators between them."""
        gap = _const(self.syntax.separator)

        def behind(rest: list[tuple[f.Format, bool]]) -> list[f.Format]:
            parts = [(_sequence([gap, member]), needed) for member, needed in rest]
            return [part if needed else f.OptionalFormat(content=part) for part, needed in parts]

        for index, (member, needed) in enumerate(members):
            if needed:
                before = [f.OptionalFormat(content=_sequence([other, gap])) for other, _ in members[:index]]
                return [*before, member, *behind(members[index + 1 :])]
        ways = [_sequence([member, *behind(members[i + 1 :])]) for i, (member, _) in enumerate(members)]
        return [f.OptionalFormat(content=_either(ways))] if ways else []

    def _keys(self, key: str, bare: bool, path: str) -> list[str]:
        """The spellings of a key with what follows it."""
        if not bare:
            return [text + ": " for text in self._spellings(key)]
        if not key or not all(char.isalnum() or char in "_-.$" for char in key):
            raise SchemaError(f"the key {key!r} cannot be written without quotes", path, "use letters and digits")
        return [key + self.syntax.assign]

    def _open(self, begin: str, end: str, bare: bool) -> f.Format:
        """An object about whose members nothing is known."""
        body = f'root ::= "{begin}" (member ({json.dumps(self.syntax.separator)} member)*)? "{end}"\n'
        key = f'name "{self.syntax.assign}"' if bare else 'string ": "'
        return f.GrammarFormat(grammar=f"{body}member ::= {key} value\n" + self._rules())

    def _any_value(self) -> str:
        return "root ::= value\n" + self._rules()

    def _rules(self) -> str:
        gap = json.dumps(self.syntax.separator)
        words = " | ".join(json.dumps(word) for word in self._words(("true", "false", "null")))
        key = f'name "{self.syntax.assign}"' if self.syntax.bare_keys else 'string ": "'
        return f"""value ::= object | array | string | number | {words}
object ::= "{{" (pair ({gap} pair)*)? "}}"
pair ::= {key} value
array ::= "[" (value ({gap} value)*)? "]"
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
name ::= [a-zA-Z_] [a-zA-Z0-9_]*
{self._strings()}"""

    def _strings(self) -> str:
        if not self.syntax.escapes:
            return _until(self.syntax.quotes[0], self.excludes)
        lines = "" if self.syntax.raw_lines else "\\n\\r"
        ways = " | ".join(f"{json.dumps(q)} ([^{q}\\\\{lines}] | escape)* {json.dumps(q)}" for q in self.syntax.quotes)
        return f"""string ::= {ways}
escape ::= "\\\\" (["'\\\\bfnrt] | "x" hex hex | "u" [0-9a-cefA-CEF] hex hex hex | wide)
wide ::= "U00" ("0" [1-9a-fA-F] | "10") hex hex hex hex
hex ::= [0-9a-fA-F]
"""

    def _resolved(self, schema: Any, path: str, refs: tuple[str, ...]) -> tuple[Any, str, tuple[str, ...]]:
        """Follow local references; what refers to itself is any value."""
        while isinstance(schema, dict) and "$ref" in schema:
            ref = schema["$ref"]
            if set(schema) - _IGNORED - {"$ref"}:
                raise SchemaError("$ref beside other keywords cannot be written as literals", path, "merge them")
            if ref in refs:
                return True, path, refs
            refs = (*refs, ref)
            try:
                schema, path = resolve(self.root, ref, ())[0], str(ref)
            except SchemaError as error:
                raise SchemaError(error.problem, f"{path}/$ref", error.fix) from None
        return schema, path, refs

    def _spellings(self, value: Any) -> list[str]:
        """A string stands in any of the quotes; other values have one spelling."""
        if not isinstance(value, str):
            return [spell(value, self.syntax)]
        return list(dict.fromkeys(_quoted(value, quote, self.syntax.escapes) for quote in self.syntax.quotes))


def spell(value: Any, syntax: Literals) -> str:
    """A value as a literal."""
    match value:
        case bool():
            return syntax.true if value else syntax.false
        case None:
            return syntax.null
        case str():
            return _quoted(value, syntax.quotes[0], syntax.escapes)
        case list() | tuple():
            return "[" + syntax.separator.join(spell(item, syntax) for item in value) + "]"
        case dict():
            members = _ordered(value, syntax)
            heads = [key + syntax.assign if syntax.bare_keys else spell(key, syntax) + ": " for key, _ in members]
            items = (head + spell(item, syntax) for head, (_, item) in zip(heads, members, strict=True))
            return "{" + syntax.separator.join(items) + "}"
        case _:
            return to_json(value)


def _quoted(text: str, quote: str, escapes: bool) -> str:
    """A string between quotes, with JSON's escapes where there are any."""
    if not escapes:
        return quote + text + quote
    if quote == '"':
        return to_json(text)
    return quote + to_json(text)[1:-1].replace('\\"', '"').replace(quote, "\\" + quote) + quote


def spell_arguments(value: dict[str, Any], syntax: Literals) -> str:
    """The arguments of a call, brackets included."""
    keys = {key: spell(key, syntax) if syntax.quoted_keys else key for key in value}
    members = (f"{keys[key]}{syntax.assign}{spell(item, syntax)}" for key, item in _ordered(value, syntax))
    return syntax.begin + syntax.separator.join(members) + syntax.end


def _ordered(members: dict[str, Any], syntax: Literals) -> list[tuple[str, Any]]:
    # As Jinja's dictsort, with which the templates of such families write arguments.
    return sorted(members.items(), key=lambda pair: pair[0].lower()) if syntax.sorted_keys else list(members.items())


def _types(schema: dict[str, Any], path: str) -> list[str]:
    given = schema.get("type", list(_TYPES) if not {"properties", "items"} & schema.keys() else None)
    if given is None:
        given = "object" if "properties" in schema else "array"
    kinds = [given] if isinstance(given, str) else given
    if not isinstance(kinds, list) or not kinds or not set(kinds) <= set(_TYPES):
        raise SchemaError(f"the type {given!r} does not exist", f"{path}/type", f"use {', '.join(_TYPES)}")
    return [kind for kind in kinds if not (kind == "integer" and "number" in kinds)]


def _check_shapes(schema: dict[str, Any], path: str) -> None:
    for word, (kind, what) in _SHAPES.items():
        if word in schema and (not isinstance(schema[word], kind) or (schema[word] == [] and word in _FILLED)):
            raise SchemaError(f"{word} must be {what}", f"{path}/{word}", "correct it")


def _check_known(schema: dict[str, Any], kind: str, path: str) -> None:
    """Refuse what would be dropped silently; keywords of another type say nothing about this one."""
    known = _KNOWN.get(kind, frozenset()) if kind else frozenset().union(*_KNOWN.values())
    others = frozenset().union(*_KNOWN.values()) if kind else frozenset()
    unknown = sorted(set(schema) - _IGNORED - known - others)
    if unknown:
        problem = f"{unknown[0]} cannot be written as literals"
        raise SchemaError(problem, f"{path}/{unknown[0]}", 'drop it, or say "strict": false')


def _anchored(pattern: str) -> str:
    head = pattern[1:] if pattern.startswith("^") else ".*" + pattern
    return head[:-1] if head.endswith("$") and not head.endswith("\\$") else head + ".*"


def _until(quote: str, excludes: Sequence[str] = ()) -> str:
    """The rules of a quoted text without escapes: one for each part of a quote or exclude that was read last."""
    words = (quote, *excludes)
    alphabet = "".join(dict.fromkeys("".join(words)))
    parts = list(dict.fromkeys(word[:size] for word in words for size in range(len(word))))
    rules = [f"string ::= {json.dumps(quote)} read0"]
    for at, part in enumerate(parts):
        ends = (part + quote).find(quote) == len(part) and not any(text in part + quote for text in excludes)
        ways = [json.dumps(quote)] if ends else []
        for char in alphabet:
            if not (part + char).endswith(words):
                # Any character leads to the longest part of a word that the text then ends with.
                longest = max((other for other in parts if (part + char).endswith(other)), key=len)
                ways.append(f"{json.dumps(char)} read{parts.index(longest)}")
        rules.append(f"read{at} ::= {' | '.join([*ways, f'[^{_class(alphabet)}] read0'])}")
    return "\n".join(rules) + "\n"


def _class(chars: str) -> str:
    """Characters as they stand in a character class of a grammar."""
    return "".join(f"\\x{ord(char):02x}" if char in "\\]^-" or char < " " else char for char in chars)


def _const(text: str) -> f.Format:
    return f.ConstStringFormat(value=text)


def _sequence(parts: list[f.Format]) -> f.Format:
    return parts[0] if len(parts) == 1 else f.SequenceFormat(elements=tuple(parts))


def _either(ways: list[f.Format]) -> f.Format:
    return ways[0] if len(ways) == 1 else f.OrFormat(elements=tuple(ways))
