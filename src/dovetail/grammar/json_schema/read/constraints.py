"""What is known about a value in one branch, and the keywords about strings, numbers, types and single values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any

from dovetail.errors import LimitError, SchemaError

from .equality import check_depth, identity
from .formats import FORMATS
from .keywords import FRACTION, NOT_FORMAT, NOT_MULTIPLE, NOT_PATTERN, NOT_VALUES, SOME_ITEM
from .pointers import Where, located, render

Located = tuple[Any, Where]
Bound = tuple[Decimal, bool]  # the limit, and whether it is itself excluded
Pattern = tuple[str, Where]
Divisor = tuple[Decimal, bool, Where]  # whether it must divide the number, or must not, and who says so

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
ANY_TYPE = 63
TYPES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "number": NUMBER,
    "integer": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}
MAX_COUNT = 1 << 30
_FEW_VALUES = 50


class Constraints:
    """What holds for a value once every choice is made; `objects` and `arrays` are the schemas to ask about members."""

    # Defaults of the class, so that a copy has to carry only what is said.
    types = ANY_TYPE
    integer = False
    fraction = False
    values: list[Any] | None = None
    banned: tuple[Any, ...] = ()  # scalars that the value is none of
    minimum: Bound | None = None
    maximum: Bound | None = None
    divisors: tuple[Divisor, ...] = ()
    low = 0
    high: int | None = None
    patterns: tuple[Pattern, ...] = ()
    barred: tuple[Pattern, ...] = ()  # patterns that are not found in the string
    objects: tuple[Located, ...] = ()
    arrays: tuple[Located, ...] = ()
    # Of the items of an array and the members of an object, as much as tells early that a branch is impossible.
    fewest = 0
    most: int | None = None
    needed: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    closed: frozenset[str] | None = None  # the only keys there can be
    within: tuple[tuple[int, dict[Any, Any]], ...] = ()  # which schema applied as a part of which other
    _lists: frozenset[Hashable] | None = None
    _bars: frozenset[Hashable] | None = None

    def copy(self) -> Constraints:
        """A copy of these constraints that may be narrowed further."""
        new = Constraints()
        new.__dict__.update(self.__dict__)
        return new

    def strike(self) -> None:
        """Leave out the types of which the keywords that apply so far admit no value."""
        if self.values is not None:
            if self.banned and len(self.values) <= _FEW_VALUES:
                banned = {identity(value) for value in self.banned}
                self.values = [value for value in self.values if identity(value) not in banned]
            self.types &= _types_of(self.values)
        if self.high is not None and self.low > self.high:
            self.types &= ~STRING
        if self.barred and not {text for text, _ in self.barred}.isdisjoint(text for text, _ in self.patterns):
            self.types &= ~STRING
        low, high = self.minimum, self.maximum
        if low is not None and high is not None and (low[0], low[1] or high[1]) > (high[0], False):
            self.types &= ~NUMBER
        if self.integer and self.fraction:
            self.types &= ~NUMBER
        if self.most is not None and self.fewest > self.most:
            self.types &= ~ARRAY

    def note_items(self, schema: dict[Any, Any]) -> None:
        """Count the items that a schema asks for, where that is plain to see."""
        fewest, most = schema.get("minItems", 0), schema.get("maxItems")
        some = schema[SOME_ITEM].start + 1 if SOME_ITEM in schema else 0
        self.fewest = max(self.fewest, some, fewest if type(fewest) is int else 0)
        if type(most) is int:
            self.most = most if self.most is None else min(self.most, most)

    def pattern_texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The patterns that are found in the string, and those that are not."""
        return tuple([pattern for pattern, _ in self.patterns]), tuple([pattern for pattern, _ in self.barred])

    def admits_words(self) -> bool:
        """Whether of strings nothing is said beyond their lengths, and those of all listed ones fit."""
        if self.patterns or self.barred or self.banned:
            return False
        lengths = {len(word) for word in self.values or ()}
        return all(self.low <= length <= (length if self.high is None else self.high) for length in lengths)

    def pattern_place(self) -> Where:
        """Where the first pattern stands."""
        return (*self.patterns, *self.barred)[0][1] if self.patterns or self.barred else ()

    def banned_words(self) -> frozenset[str]:
        """The strings that the value is none of."""
        return frozenset(word for word in self.banned if isinstance(word, str))

    def lists(self, key: Hashable) -> bool:
        """Whether the value with this identity is listed, where some are; asked when all has been read."""
        if self.values is None:
            return True
        if self._lists is None:
            self._lists = frozenset(map(identity, self.values))
        return key in self._lists

    def bars(self, key: Hashable) -> bool:
        """Whether the value with this identity is barred; the same."""
        if self._bars is None:
            self._bars = frozenset(map(identity, self.banned))
        return key in self._bars

    def _values(self) -> Hashable:
        if self.values is None or len(self.values) > _FEW_VALUES:
            return None if self.values is None else id(self.values)
        return tuple(map(identity, self.values))

    def signature(self) -> Hashable:
        """Equal for constraints that say the same, as far as that is cheap to see."""
        return (
            self.types,
            self.integer,
            self.fraction,
            self._values(),
            tuple(map(identity, self.banned)) if self.banned else (),
            self.minimum,
            self.maximum,
            tuple([(divisor, holds) for divisor, holds, _ in self.divisors]),
            self.low,
            self.high,
            self.pattern_texts() if self.patterns or self.barred else None,
            tuple([id(schema) for schema, _ in self.objects]) if self.objects else (),
            tuple([id(schema) for schema, _ in self.arrays]) if self.arrays else (),
            tuple([(owner, id(schema)) for owner, schema in self.within]) if self.within else (),
        )


TYPE_OF: dict[type, int] = {
    type(None): NULL,
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    list: ARRAY,
    dict: OBJECT,
}


def _types_of(values: list[Any]) -> int:
    """The types that some of the values have."""
    types = 0
    for kind in set(map(type, values)):
        types |= TYPE_OF.get(kind, ANY_TYPE)
    return types


def count(value: Any, keyword: str, where: Where) -> int:
    """The value of a keyword that counts something."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != int(value):
        raise SchemaError(f"{keyword} must be a whole number, not {value!r}", render((where, keyword)), "use 0 or more")
    return int(value)


def at_least(low: int, value: Any, keyword: str, where: Where) -> int:
    """The larger of two lower bounds, the second a keyword's value."""
    fewest = count(value, keyword, where)
    if fewest > MAX_COUNT:
        raise LimitError(f"{keyword} is {fewest}, and no output is that long", render((where, keyword)), "lower it")
    return max(low, fewest)


def at_most(high: int | None, value: Any, keyword: str, where: Where) -> int | None:
    """The smaller of two upper bounds, the second a keyword's value; no output comes near a very large one."""
    most = count(value, keyword, where)
    if most > MAX_COUNT:
        return high
    return most if high is None else min(high, most)


def schemas(value: Any, keyword: str, where: Where, empty: bool = False) -> Sequence[Any]:
    """The value of a keyword that lists schemas."""
    if not isinstance(value, list) or not (value or empty):
        raise SchemaError(f"{keyword} must be a list of schemas", render((where, keyword)), "list at least one schema")
    return value


def mapping(schema: dict[Any, Any], keyword: str, where: Where) -> dict[str, Any]:
    """The value of a keyword that maps names to something."""
    value = schema.get(keyword, {})
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be an object", render((where, keyword)), "map each key to its schema")
    return value


def names(value: Any, keyword: str, where: Where) -> list[str]:
    """The value of a keyword that lists keys."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        problem = f"{keyword} must be a list of strings"
        raise SchemaError(problem, render((where, keyword)), "list the keys that must be there")
    return value


def type_names(value: Any, where: Where) -> list[str]:
    """The value of `type` as a list."""
    types = value if isinstance(value, list) else [value]
    for name in types:
        if not isinstance(name, str) or name not in TYPES:
            listed = ", ".join(TYPES)
            raise SchemaError(f"type {name!r} is not a JSON type", render((where, "type")), f"use one of {listed}")
    return types


def number(value: Any, keyword: str, where: Where) -> Decimal:
    """The value of a keyword that is a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SchemaError(f"{keyword} must be a number, not {value!r}", render((where, keyword)), "write a number")
    return Decimal(repr(value))


def _type(known: Constraints, value: Any, where: Where) -> None:
    types, integer = 0, True
    for name in type_names(value, where):
        types |= TYPES[name]
        integer = integer and name != "number"
    known.types &= types
    if types & NUMBER and integer:
        known.integer = True


def _enum(known: Constraints, value: Any, where: Where) -> None:
    if not isinstance(value, list):
        raise SchemaError("enum must be a list of values", render((where, "enum")), "write the values as a list")
    located((where, "enum"), check_depth, value)
    if known.values is None:
        known.values = value
    else:
        kept = {identity(item) for item in value}
        known.values = [item for item in known.values if identity(item) in kept]


def _const(known: Constraints, value: Any, where: Where) -> None:
    _enum(known, [value], where)


def _not_values(known: Constraints, value: Any, _: Where) -> None:
    known.banned += tuple(value)


def _min_length(known: Constraints, value: Any, where: Where) -> None:
    known.low = at_least(known.low, value, "minLength", where)


def _max_length(known: Constraints, value: Any, where: Where) -> None:
    known.high = at_most(known.high, value, "maxLength", where)


def _pattern(wanted: bool) -> Callable[[Constraints, Any, Where], None]:
    def handle(known: Constraints, value: Any, where: Where) -> None:
        if not isinstance(value, str):
            problem = f"pattern must be a string, not {value!r}"
            raise SchemaError(problem, render((where, "pattern")), "quote the pattern")
        if wanted:
            known.patterns += ((value, (where, "pattern")),)
        else:
            known.barred += ((value, (where, "pattern")),)

    return handle


def _format(known: Constraints, value: Any, where: Where) -> None:
    if isinstance(value, str) and value in FORMATS:
        known.patterns += ((FORMATS[value], (where, "format")),)


def _not_format(known: Constraints, value: Any, where: Where) -> None:
    if isinstance(value, str) and value in FORMATS:
        known.barred += ((FORMATS[value], (where, "format")),)
    else:
        known.types = 0  # a format that says nothing holds for every string


def _multiple(keyword: str, holds: bool) -> Callable[[Constraints, Any, Where], None]:
    def handle(known: Constraints, value: Any, where: Where) -> None:
        divisor = number(value, keyword, where)
        if divisor <= 0:
            raise SchemaError(f"{keyword} must be more than 0", render((where, keyword)), "write a positive number")
        known.divisors += ((divisor, holds, where),)

    return handle


def _fraction(known: Constraints, _value: Any, _where: Where) -> None:
    known.fraction = True


def _limit(keyword: str, lower: bool, exclusive: bool) -> Callable[[Constraints, Any, Where], None]:
    def handle(known: Constraints, value: Any, where: Where) -> None:
        bound = number(value, keyword, where), exclusive
        if lower and (known.minimum is None or bound > known.minimum):
            known.minimum = bound
        highest = known.maximum
        if not lower and (highest is None or (bound[0], not exclusive) < (highest[0], not highest[1])):
            known.maximum = bound

    return handle


HANDLERS: dict[Any, Callable[[Constraints, Any, Where], None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    NOT_VALUES: _not_values,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern(True),
    NOT_PATTERN: _pattern(False),
    "format": _format,
    NOT_FORMAT: _not_format,
    "minimum": _limit("minimum", True, False),
    "maximum": _limit("maximum", False, False),
    "exclusiveMinimum": _limit("exclusiveMinimum", True, True),
    "exclusiveMaximum": _limit("exclusiveMaximum", False, True),
    "multipleOf": _multiple("multipleOf", True),
    NOT_MULTIPLE: _multiple("multipleOf", False),
    FRACTION: _fraction,
}
