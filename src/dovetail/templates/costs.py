"""What filters and methods cost, reckoned before they run: jinja2 and Python would only notice when it is too late."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from types import GeneratorType
from typing import Any

from dovetail.errors import LimitError
from dovetail.templates.budget import BUDGET, Budget

# Spends what a call with these arguments will use. One that had to take an iterator apart for that returns the first
# argument anew.
Cost = Callable[..., Any]
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
        BUDGET.get().spend(_CALL)
        return next(self._items)


def budgeted(function: Callable[..., Any], cost: Cost | None) -> Callable[..., Any]:
    """A filter or test that pays before it runs, and for what it makes."""
    own = 1 if hasattr(function, "jinja_pass_arg") else 0  # the context or environment comes first

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        budget = BUDGET.get()
        budget.spend(_CALL + len(args))
        given = args[own:]
        if given and cost is not None and (anew := cost(budget, *given, **kwargs)) is not None:
            args = (*args[:own], anew, *given[1:])
        result = function(*args, **kwargs)
        if isinstance(result, GeneratorType):
            return Lazy(result, given[0] if given else None)
        return budget.keep(result)

    return run


def budgeted_call(budget: Budget, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments with which a method may be called, once it has paid."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, _TEXT):
        budget.scan(len(owner))
        cost = METHODS.get(name)
        if cost is not None and (anew := cost(budget, owner, *args, **kwargs)) is not None:
            return (anew, *args[1:])
    elif isinstance(owner, list | tuple) and name in ("index", "count", "remove", "sort", "insert"):
        budget.weigh(owner)
    elif isinstance(owner, int) and name == "to_bytes":
        budget.need(_integer(args[0] if args else kwargs.get("length", 1)))
    for argument in args:
        if isinstance(argument, str):
            budget.scan(len(argument))
        else:
            budget.weigh(argument)
    return args


def searched(budget: Budget, text: Any, part: Any) -> None:
    """The cost of looking for a part: Python does so in linear time only where the text is long."""
    size, sought = len(text), len(part) if isinstance(part, _TEXT) else 1
    budget.scan(size * min(sought, size) >> 2 if size < _LINEAR_FROM else size + sought)


def percent(budget: Budget, text: str, values: Any) -> None:
    """The cost of `text % values`."""
    weight = budget.weigh(values)
    widest = max((abs(item) for item in _flat(values) if isinstance(item, int)), default=0)
    size, named = len(text), 0
    for spec in _PERCENT.finditer(text):
        named += bool(spec[1])
        for width in (spec[2], spec[3]):
            size += widest if width == "*" else int(width or 0)
    budget.need(size + weight.size * max(named, 1))


def spec_width(spec: str) -> int:
    """How wide a format specification can make a value."""
    return sum(int(number) for number in _NUMBER.findall(spec))


def _flat(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _integer(value: Any) -> int:
    return abs(value) if isinstance(value, int) else 0


def _size(budget: Budget, value: Any) -> int:
    return len(value) if isinstance(value, _TEXT) else budget.weigh(value).size


def _deep(budget: Budget, *args: Any, **kwargs: Any) -> None:
    """The rule: what a filter reads in its arguments, it may make a few times over."""
    size = sum(_size(budget, argument) for argument in (*args, *kwargs.values()))
    budget.scan(size)
    budget.need(size * 2)


def _slow(steps: int) -> Cost:
    def cost(budget: Budget, *args: Any, **kwargs: Any) -> None:
        size = sum(_size(budget, argument) for argument in (*args, *kwargs.values()))
        budget.spend(size * steps)
        budget.need(size * 12)

    return cost


def _quadratic(budget: Budget, value: Any, *_rest: Any, **_options: Any) -> None:
    size = _size(budget, value)
    budget.spend(size * size >> 8)
    budget.need(size * 8)


def _items(budget: Budget, value: Any, *_rest: Any, **_options: Any) -> None:
    """A list of what is there already."""
    if hasattr(value, "__len__"):
        budget.need(len(value) * 16)


def _center(budget: Budget, value: Any, width: Any = 80, *_rest: Any) -> None:
    budget.need(_size(budget, value) + _integer(width))


def _indent(budget: Budget, value: Any, width: Any = 4, *_rest: Any, **_options: Any) -> None:
    step = len(width) if isinstance(width, str) else _integer(width)
    text = value if isinstance(value, str) else ""
    budget.need(_size(budget, value) + (len(text.splitlines()) + 1) * step)


def _join(budget: Budget, value: Any, d: Any = "", *_rest: Any, **_options: Any) -> Any:
    items = value if hasattr(value, "__len__") else list(value)
    budget.need(budget.weigh(items).size + len(items) * _size(budget, d))
    return items


def _join_method(budget: Budget, separator: Any, value: Any = ()) -> Any:
    return _join(budget, value, separator)


def _replace(budget: Budget, text: Any, old: Any = "", new: Any = "", *_rest: Any, **_options: Any) -> None:
    size = _size(budget, text)
    searched(budget, text if isinstance(text, _TEXT) else "", old)
    if isinstance(text, _TEXT) and isinstance(old, type(text)):
        places = text.count(old) if old else len(text) + 1  # type: ignore[arg-type] # both are text, or both markup
    else:
        places = size + 1
    budget.need(size + places * _size(budget, new))


def _format(budget: Budget, text: Any, *args: Any, **kwargs: Any) -> None:
    percent(budget, text if isinstance(text, str) else str(text), args or kwargs)


def _round(_budget: Budget, _value: Any, precision: Any = 0, *_rest: Any, **_options: Any) -> None:
    if _integer(precision) > _MAX_PRECISION:
        raise LimitError(f"the chat template rounds to {precision} digits", "", f"{_MAX_PRECISION} is the limit")


def _batch(budget: Budget, value: Any, linecount: Any = 1, fill_with: Any = None) -> None:
    _items(budget, value)
    budget.need(_integer(linecount) * 8 if fill_with is not None else 0)


def _slice(budget: Budget, value: Any, slices: Any = 1, *_rest: Any, **_options: Any) -> None:
    _items(budget, value)
    budget.spend(_integer(slices) * _CALL)


def _tojson(
    budget: Budget,
    value: Any,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    *_rest: Any,
    **_: Any,
) -> None:
    weight = budget.weigh(value)
    step = len(indent) if isinstance(indent, str) else _integer(indent)
    if step > _MAX_INDENT:
        raise LimitError(f"the chat template indents by {step}", "", f"{_MAX_INDENT} is the limit")
    budget.scan(weight.size * 8)
    each = step * weight.depth + _size(budget, separators)
    budget.need(weight.size * (6 if ensure_ascii else 2) + weight.nodes * each)


def _sum(budget: Budget, value: Any, _attribute: Any = None, start: Any = 0, **_options: Any) -> Any:
    """A sum of lists copies what it has so far at each of them."""
    items = value if hasattr(value, "__len__") else list(value)
    if not isinstance(start, int | float):
        size = _size(budget, start)
        for item in items:
            size += _size(budget, item)
            budget.make(size)
    return items


def _wordwrap(
    budget: Budget,
    value: Any,
    _width: Any = 79,
    _break: Any = True,
    wrapstring: Any = None,
    *_rest: Any,
    **_options: Any,
) -> None:
    size = _size(budget, value)
    budget.spend(size * 16)
    budget.need((size + 1) * (1 + _size(budget, wrapstring)))


def _expandtabs(budget: Budget, text: Any, tabsize: Any = 8) -> None:
    budget.need(len(text) + text.count(b"\t" if isinstance(text, bytes) else "\t") * _integer(tabsize))


def _search(budget: Budget, text: Any, part: Any = "", *_rest: Any, **_options: Any) -> None:
    searched(budget, text, part)


def _product(budget: Budget, text: Any, part: Any = "", *_rest: Any, **_options: Any) -> None:
    """A search from the right, or for any of some characters, compares each with each."""
    budget.scan(len(text) * (len(part) if isinstance(part, _TEXT) else 1) >> 2)


def _translate(budget: Budget, text: Any, table: Any = None, *_rest: Any, **_options: Any) -> None:
    budget.need((len(text) + 1) * _size(budget, table))


def _split(budget: Budget, text: Any, sep: Any = None, *_rest: Any, **_options: Any) -> None:
    searched(budget, text, sep)
    pieces = text.count(sep) if sep and isinstance(sep, type(text)) else len(text) // 2
    budget.need(len(text) + pieces * 16)


def _rsplit(budget: Budget, text: Any, sep: Any = None, *_rest: Any, **_options: Any) -> None:
    _product(budget, text, sep)
    _split(budget, text, sep)


def _splitlines(budget: Budget, text: Any, *_rest: Any, **_options: Any) -> None:
    budget.need(len(text) * 8)


def _codec(budget: Budget, text: Any, encoding: Any = "utf-8", *_rest: Any, **_options: Any) -> None:
    if encoding not in _CODECS:
        _quadratic(budget, text)


def lipsum(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> str:
    """Jinja2's filler text, for as many words as are allowed."""
    from jinja2.utils import generate_lorem_ipsum

    budget = BUDGET.get()
    budget.spend(_integer(n) * _integer(max) * 40)
    return str(budget.keep(generate_lorem_ipsum(n, html, min, max)))


def filter_cost(name: str) -> Cost | None:
    """What a filter pays; one that is not known, for all that it is given."""
    return FILTERS.get(name, _deep)


def test_cost(name: str) -> Cost | None:
    """What a test pays: most of them look at a value and not into it."""
    return _deep if name in _COMPARING else None


_COMPARING = frozenset("== eq equalto != ne > gt greaterthan >= ge < lt lessthan <= le in lower upper".split())
_FREE: dict[str, Cost | None] = dict.fromkeys(
    (
        "default d first last length count items map select reject selectattr rejectattr attr random abs float int safe"
    ).split()
)
_ORDERING: dict[str, Cost | None] = dict.fromkeys("sort unique min max groupby dictsort".split(), _slow(2))
_PADDED: dict[str, Cost] = dict.fromkeys(("ljust", "rjust", "center", "zfill"), _center)
FILTERS: dict[str, Cost | None] = (
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
_SEARCHING: dict[str, Cost] = dict.fromkeys("count find index partition removeprefix".split(), _search)
_COMPARING_EACH: dict[str, Cost] = dict.fromkeys("strip lstrip rstrip rfind rindex rpartition".split(), _product)
METHODS: dict[str, Cost] = (
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
