"""What filters and methods cost, reckoned before they run: jinja2 and Python would only notice when it is too late."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from types import GeneratorType
from typing import Any

from dovetail.errors import LimitError
from dovetail.templates.meter import METER, Meter

# A toll gets the meter and the arguments; where it had to take an iterator apart it returns the first argument anew.
Toll = Callable[..., Any]
_CALL = 10  # steps of any filter or method and of each item of a lazy one, about half a microsecond
_DEEPEST_CHAIN = 100
_MAX_PRECISION = 300
_MAX_INDENT = 256
_LINEAR_FROM = 30_000  # characters, from which on CPython searches by the two-way algorithm whatever is sought
_PERCENT = re.compile(r"%(\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")
_NUMBER = re.compile(r"\d+")
_CODECS = frozenset({"utf-8", "utf8", "ascii", "latin-1"})
_TEXT = (str, bytes)


class Lazy:
    """The items of a lazy filter, each of them counted."""

    __slots__ = ("_depth", "_items")
    _depth: int

    def __init__(self, items: Iterator[Any], upstream: Any) -> None:
        # Each filter of a chain calls the one before it, so a long one would overflow Python's stack.
        self._depth = upstream._depth + 1 if isinstance(upstream, Lazy) else 1
        if self._depth > _DEEPEST_CHAIN:
            raise LimitError("the chat template chains too many filters", "", "turn the items into a list in between")
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        METER.get().spend(_CALL)
        return next(self._items)


def metered(function: Callable[..., Any], toll: Toll | None) -> Callable[..., Any]:
    """A filter or test that pays before it runs, and for what it makes."""
    own = 1 if hasattr(function, "jinja_pass_arg") else 0  # the context or environment comes first

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        meter = METER.get()
        meter.spend(_CALL + len(args))
        given = args[own:]
        if given and toll is not None and (anew := toll(meter, *given, **kwargs)) is not None:
            args = (*args[:own], anew, *given[1:])
        result = function(*args, **kwargs)
        if isinstance(result, GeneratorType):
            return Lazy(result, given[0] if given else None)
        return meter.keep(result)

    return run


def metered_call(meter: Meter, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments with which a method may be called, once it has paid."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, _TEXT):
        meter.scan(len(owner))
        toll = METHODS.get(name)
        if toll is not None and (anew := toll(meter, owner, *args, **kwargs)) is not None:
            return (anew, *args[1:])
    elif isinstance(owner, list | tuple) and name in ("index", "count", "remove", "sort", "insert"):
        meter.weigh(owner)
    elif isinstance(owner, int) and name == "to_bytes":
        meter.need(_integer(args[0] if args else kwargs.get("length", 1)))
    for argument in args:
        if isinstance(argument, str):
            meter.scan(len(argument))
        else:
            meter.weigh(argument)
    return args


def searched(meter: Meter, text: Any, part: Any) -> None:
    """The cost of looking for a part: Python does so in linear time only where the text is long."""
    size, sought = len(text), len(part) if isinstance(part, _TEXT) else 1
    meter.scan(size * min(sought, size) >> 2 if size < _LINEAR_FROM else size + sought)


def percent(meter: Meter, text: str, values: Any) -> None:
    """The cost of `text % values`."""
    weight = meter.weigh(values)
    widest = max((abs(item) for item in _flat(values) if isinstance(item, int)), default=0)
    size, named = len(text), 0
    for spec in _PERCENT.finditer(text):
        named += bool(spec[1])
        for width in (spec[2], spec[3]):
            size += widest if width == "*" else int(width or 0)
    meter.need(size + weight.size * max(named, 1))


def spec_width(spec: str) -> int:
    """How wide a format specification can make a value."""
    return sum(int(number) for number in _NUMBER.findall(spec))


def _flat(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _integer(value: Any) -> int:
    return abs(value) if isinstance(value, int) else 0


def _size(meter: Meter, value: Any) -> int:
    return len(value) if isinstance(value, _TEXT) else meter.weigh(value).size


def _deep(meter: Meter, *args: Any, **kwargs: Any) -> None:
    """The rule: what a filter reads in its arguments, it may make a few times over."""
    size = sum(_size(meter, argument) for argument in (*args, *kwargs.values()))
    meter.scan(size)
    meter.need(size * 2)


def _slow(steps: int) -> Toll:
    def toll(meter: Meter, *args: Any, **kwargs: Any) -> None:
        size = sum(_size(meter, argument) for argument in (*args, *kwargs.values()))
        meter.spend(size * steps)
        meter.need(size * 12)

    return toll


def _quadratic(meter: Meter, value: Any, *_rest: Any, **_options: Any) -> None:
    size = _size(meter, value)
    meter.spend(size * size >> 8)
    meter.need(size * 8)


def _items(meter: Meter, value: Any, *_rest: Any, **_options: Any) -> None:
    """A list of what is there already."""
    if hasattr(value, "__len__"):
        meter.need(len(value) * 16)


def _center(meter: Meter, value: Any, width: Any = 80, *_rest: Any) -> None:
    meter.need(_size(meter, value) + _integer(width))


def _indent(meter: Meter, value: Any, width: Any = 4, *_rest: Any, **_options: Any) -> None:
    step = len(width) if isinstance(width, str) else _integer(width)
    text = value if isinstance(value, str) else ""
    meter.need(_size(meter, value) + (len(text.splitlines()) + 1) * step)


def _join(meter: Meter, value: Any, d: Any = "", *_rest: Any, **_options: Any) -> Any:
    items = value if hasattr(value, "__len__") else list(value)
    meter.need(meter.weigh(items).size + len(items) * _size(meter, d))
    return items


def _join_method(meter: Meter, separator: Any, value: Any = ()) -> Any:
    return _join(meter, value, separator)


def _replace(meter: Meter, text: Any, old: Any = "", new: Any = "", *_rest: Any, **_options: Any) -> None:
    size = _size(meter, text)
    searched(meter, text if isinstance(text, _TEXT) else "", old)
    if isinstance(text, _TEXT) and isinstance(old, type(text)):
        places = text.count(old) if old else len(text) + 1  # type: ignore[arg-type] # both are text, or both markup
    else:
        places = size + 1
    meter.need(size + places * _size(meter, new))


def _format(meter: Meter, text: Any, *args: Any, **kwargs: Any) -> None:
    percent(meter, text if isinstance(text, str) else str(text), args or kwargs)


def _round(_meter: Meter, _value: Any, precision: Any = 0, *_rest: Any, **_options: Any) -> None:
    if _integer(precision) > _MAX_PRECISION:
        raise LimitError(f"the chat template rounds to {precision} digits", "", f"{_MAX_PRECISION} is the limit")


def _batch(meter: Meter, value: Any, linecount: Any = 1, fill_with: Any = None) -> None:
    _items(meter, value)
    meter.need(_integer(linecount) * 8 if fill_with is not None else 0)


def _slice(meter: Meter, value: Any, slices: Any = 1, *_rest: Any, **_options: Any) -> None:
    _items(meter, value)
    meter.spend(_integer(slices) * _CALL)


def _tojson(
    meter: Meter,
    value: Any,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    *_rest: Any,
    **_: Any,
) -> None:
    weight = meter.weigh(value)
    step = len(indent) if isinstance(indent, str) else _integer(indent)
    if step > _MAX_INDENT:
        raise LimitError(f"the chat template indents by {step}", "", f"{_MAX_INDENT} is the limit")
    meter.scan(weight.size * 8)
    each = step * weight.depth + _size(meter, separators)
    meter.need(weight.size * (6 if ensure_ascii else 2) + weight.nodes * each)


def _sum(meter: Meter, value: Any, _attribute: Any = None, start: Any = 0, **_options: Any) -> Any:
    """A sum of lists copies what it has so far at each of them."""
    items = value if hasattr(value, "__len__") else list(value)
    if not isinstance(start, int | float):
        size = _size(meter, start)
        for item in items:
            size += _size(meter, item)
            meter.make(size)
    return items


def _wordwrap(
    meter: Meter, value: Any, _width: Any = 79, _break: Any = True, wrapstring: Any = None, *_rest: Any, **_options: Any
) -> None:
    size = _size(meter, value)
    meter.spend(size * 16)
    meter.need((size + 1) * (1 + _size(meter, wrapstring)))


def _expandtabs(meter: Meter, text: Any, tabsize: Any = 8) -> None:
    meter.need(len(text) + text.count(b"\t" if isinstance(text, bytes) else "\t") * _integer(tabsize))


def _search(meter: Meter, text: Any, part: Any = "", *_rest: Any, **_options: Any) -> None:
    searched(meter, text, part)


def _product(meter: Meter, text: Any, part: Any = "", *_rest: Any, **_options: Any) -> None:
    """A search from the right, or for any of some characters, compares each with each."""
    meter.scan(len(text) * (len(part) if isinstance(part, _TEXT) else 1) >> 2)


def _translate(meter: Meter, text: Any, table: Any = None, *_rest: Any, **_options: Any) -> None:
    meter.need((len(text) + 1) * _size(meter, table))


def _split(meter: Meter, text: Any, sep: Any = None, *_rest: Any, **_options: Any) -> None:
    searched(meter, text, sep)
    pieces = text.count(sep) if sep and isinstance(sep, type(text)) else len(text) // 2
    meter.need(len(text) + pieces * 16)


def _rsplit(meter: Meter, text: Any, sep: Any = None, *_rest: Any, **_options: Any) -> None:
    _product(meter, text, sep)
    _split(meter, text, sep)


def _splitlines(meter: Meter, text: Any, *_rest: Any, **_options: Any) -> None:
    meter.need(len(text) * 8)


def _codec(meter: Meter, text: Any, encoding: Any = "utf-8", *_rest: Any, **_options: Any) -> None:
    if encoding not in _CODECS:
        _quadratic(meter, text)


def lipsum(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> str:
    """Jinja2's filler text, for as many words as are allowed."""
    from jinja2.utils import generate_lorem_ipsum

    meter = METER.get()
    meter.spend(_integer(n) * _integer(max) * 40)
    return str(meter.keep(generate_lorem_ipsum(n, html, min, max)))


def filter_toll(name: str) -> Toll | None:
    """What a filter pays; one that is not known, for all that it is given."""
    return FILTERS.get(name, _deep)


def test_toll(name: str) -> Toll | None:
    """What a test pays: most of them look at a value and not into it."""
    return _deep if name in _COMPARING else None


_COMPARING = frozenset("== eq equalto != ne > gt greaterthan >= ge < lt lessthan <= le in lower upper".split())
_FREE: dict[str, Toll | None] = dict.fromkeys(
    (
        "default d first last length count items map select reject selectattr rejectattr attr random abs float int safe"
    ).split()
)
_ORDERING: dict[str, Toll | None] = dict.fromkeys("sort unique min max groupby dictsort".split(), _slow(2))
_PADDED: dict[str, Toll] = dict.fromkeys(("ljust", "rjust", "center", "zfill"), _center)
FILTERS: dict[str, Toll | None] = (
    _FREE
    | _ORDERING
    | {
        "batch": _batch,
        "center": _center,
        "escape": _slow(1),
        "e": _slow(1),
        "forceescape": _slow(1),
        "format": _format,
        "indent": _indent,
        "join": _join,
        "list": _items,
        "pprint": _slow(200),
        "replace": _replace,
        "reverse": _items,
        "round": _round,
        "slice": _slice,
        "striptags": _quadratic,
        "sum": _sum,
        "title": _slow(4),
        "tojson": _tojson,
        "urlencode": _slow(8),
        "urlize": _quadratic,
        "wordcount": _slow(2),
        "wordwrap": _wordwrap,
        "xmlattr": _slow(8),
    }
)
_SEARCHING: dict[str, Toll] = dict.fromkeys("count find index partition removeprefix".split(), _search)
_COMPARING_EACH: dict[str, Toll] = dict.fromkeys("strip lstrip rstrip rfind rindex rpartition".split(), _product)
METHODS: dict[str, Toll] = (
    _PADDED
    | _SEARCHING
    | _COMPARING_EACH
    | {
        "decode": _codec,
        "encode": _codec,
        "expandtabs": _expandtabs,
        "join": _join_method,
        "replace": _replace,
        "rsplit": _rsplit,
        "split": _split,
        "splitlines": _splitlines,
        "striptags": _quadratic,
        "translate": _translate,
        "unescape": _quadratic,
    }
)
