"""What a schema declares about one argument: enough to tell `02134` the text from 2134 the number."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dovetail.errors import SchemaError
from dovetail.grammar.json_schema.read.pointers import follow
from dovetail.messages import from_json, to_json

KINDS = frozenset(("string", "number", "boolean", "null", "object", "array"))
_STRING = frozenset(("string",))
# The names of types that people write for those of JSON Schema, and what they mean.
_ALIASES = {"integer": "number", "int": "number", "float": "number", "double": "number", "long": "number"}
_ALIASES |= {"bool": "boolean", "dict": "object", "map": "object", "list": "array", "tuple": "array"}
_ALIASES |= {"str": "string", "text": "string", "varchar": "string", "char": "string", "none": "null"}
_ALIASES |= {kind: kind for kind in KINDS}
_COMPOSITE = frozenset(("object", "array"))
_BRACKETS = ("{", "[")
_BRANCHES = ("anyOf", "oneOf", "allOf")
_DECLARING = frozenset(("type", "enum", "const", "properties", "items", "prefixItems", "additionalProperties"))
_MAX_NODES = 200  # that are looked at for one argument

# What a model writes is no program whose author wants to hear of odd escapes; the filter holds for this name only.
_SOURCE = "<arguments of a call>"
warnings.filterwarnings("ignore", category=SyntaxWarning, module=re.escape(_SOURCE))
warnings.filterwarnings("ignore", category=DeprecationWarning, module=re.escape(_SOURCE))

_ZEROS = re.compile(r"([+-]?)0*+([0-9].*)", re.DOTALL)
WORDS = {"True": "true", "False": "false", "None": "null", "TRUE": "true", "FALSE": "false", "NULL": "null"}
_JSON_WORDS = frozenset(("true", "false", "null"))


class Declared:
    """A node of a schema, or nothing at all, with the questions that a reader has about it."""

    __slots__ = ("_nodes", "_root", "kinds")

    def __init__(self, root: Any, *schemas: Any) -> None:
        self._root = root
        self._nodes = list(_alternatives(root, schemas))
        self.kinds = frozenset().union(*map(_kinds, self._nodes)) or KINDS

    @property
    def keys(self) -> frozenset[str]:
        """The keys that are declared by name."""
        declared = [node.get("properties") for node in self._nodes]
        return frozenset(key for properties in declared if isinstance(properties, dict) for key in properties)

    @property
    def required(self) -> frozenset[str]:
        """The keys that every alternative demands."""
        demanded = [node.get("required") for node in self._nodes]
        named = [frozenset(filter(_is_text, keys)) for keys in demanded if isinstance(keys, list)]
        return frozenset.intersection(*named) if named and len(named) == len(demanded) else frozenset()

    def property(self, key: str) -> Declared:
        """What is declared about the value of a key."""
        if not self._nodes:
            return self
        return Declared(self._root, *(schema for node in self._nodes for schema in _property(node, key)))

    def item(self, index: int) -> Declared:
        """What is declared about an item of an array."""
        if not self._nodes:
            return self
        schemas = []
        for node in self._nodes:
            prefix = node.get("prefixItems")
            if isinstance(prefix, list) and index < len(prefix):
                schemas.append(prefix[index])
            elif "items" in node:
                schemas.append(node["items"])
        return Declared(self._root, *schemas)

    def as_json(self, raw: str, kinds: frozenset[str], python: frozenset[str] = frozenset()) -> tuple[str, bool]:
        """Raw text as JSON text of one of these kinds, and whether it was written as it should be.

        Values of the kinds `python` may be written as Python writes them.
        """
        text = raw.strip()
        value, known = _loaded(text)
        if known and not isinstance(value, str) and self._admits(value, kinds):
            return text, True
        if python & kinds or text[:1] in _BRACKETS:
            value, known = _evaluated(text)
            if known and kind_of(value) in python | _COMPOSITE and self._admits(value, kinds):
                return to_json(value), kind_of(value) in python
        if "string" in kinds:
            return to_json(raw), True
        if known and isinstance(value, str):
            text = value  # a number in quotes is still a number
        return self._repaired(text, kinds), False

    def converted(self, raw: str, announced: frozenset[str]) -> str:
        """Raw text that stands for one of the kinds `announced`, as JSON text of a kind that is declared."""
        value, known = _loaded(raw.strip())
        is_quoted = known and isinstance(value, str) and "string" not in announced
        return self.as_json(value if is_quoted else raw, self.kinds)[0]

    def _repaired(self, text: str, kinds: frozenset[str]) -> str:
        word = WORDS.get(text, text)
        zeros = _ZEROS.fullmatch(word)
        for guess in (word, zeros[1].replace("+", "") + zeros[2]) if zeros else (word,):
            value, known = _loaded(guess)
            if known and self._admits(value, kinds):
                return guess
        return to_json(text)

    def _admits(self, value: Any, kinds: frozenset[str]) -> bool:
        """Whether type, enum and const let the value stand; other keywords do not tell text from JSON."""
        kind = kind_of(value)
        if kind not in kinds or not self._nodes:
            return kind in kinds
        return any(kind in _kinds(node) and value in _values(node, value) for node in self._nodes)


def kind_of(value: Any) -> str:
    """The JSON type of a value; integers are numbers."""
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case None:
            return "null"
        case list():
            return "array"
        case _:
            return "object"


def _alternatives(root: Any, schemas: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The plain nodes behind references and alternatives; any of them may be the one that holds."""
    waiting = [(schema, False) for schema in reversed(schemas)]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node, known = waiting.pop()  # known: another node declares what this one leaves open
        if not isinstance(node, dict):
            continue
        declares = bool(node.keys() & _DECLARING)
        branches = [(one, known or declares or word == "allOf") for word in _BRANCHES for one in _list(node.get(word))]
        if isinstance(node.get("$ref"), str):
            branches += ((one, known or declares) for one in _resolved(root, node["$ref"]))
        if node.get("nullable") is True:
            branches.append(({"type": "null"}, True))
        if declares or not (branches or known):
            yield node
        waiting += reversed(branches)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _resolved(root: Any, ref: str) -> list[Any]:
    """What a JSON Pointer into the schema leads to: it is asked for each value, so names are not looked for."""
    if ref not in ("", "#") and not ref.startswith("#/"):
        return []
    try:
        return [follow(root, (), ref[1:], ref, ())[0]]
    except SchemaError:
        return []


def _kinds(node: Mapping[str, Any]) -> frozenset[str]:
    if "const" in node:
        return frozenset((kind_of(node["const"]),))
    if isinstance(node.get("enum"), list):
        return frozenset(map(kind_of, node["enum"]))
    names = node.get("type")
    if isinstance(names, str | list):
        known = [name for name in ([names] if isinstance(names, str) else names) if isinstance(name, str)]
        return KINDS & {_ALIASES.get(name.lower(), name) for name in known}
    if "properties" in node:
        return frozenset(("object",))
    return frozenset(("array",)) if "items" in node else KINDS


def _values(node: Mapping[str, Any], value: Any) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    enum = node.get("enum")
    return enum if isinstance(enum, list) else [value]


def _property(node: Mapping[str, Any], key: str) -> list[Any]:
    properties = node.get("properties")
    if isinstance(properties, dict) and key in properties:
        return [properties[key]]
    patterns = node.get("patternProperties")
    # Whether a pattern fits is not asked: a pattern of a stranger's schema could take any time.
    schemas = list(patterns.values()) if isinstance(patterns, dict) else []
    return [*schemas, node["additionalProperties"]] if "additionalProperties" in node else schemas


class _JsonWords(ast.NodeTransformer):
    """Reads JSON's constants among Python's literals: formats let both stand in one value."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A constant of JSON, or the name as it is."""
        return ast.Constant({"true": True, "false": False, "null": None}[node.id]) if node.id in _JSON_WORDS else node


def _evaluated(text: str) -> tuple[Any, bool]:
    """The value of a Python literal that JSON could carry."""
    try:
        value = ast.literal_eval(_JsonWords().visit(ast.parse(text.lstrip(" \t"), _SOURCE, mode="eval")))
        to_json(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None, False
    return value, not isinstance(value, bytes | set | tuple | complex)


def _loaded(text: str) -> tuple[Any, bool]:
    try:
        return from_json(text), True
    except (ValueError, RecursionError):
        return None, False
