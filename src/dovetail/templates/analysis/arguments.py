"""How a template writes arguments that are not JSON as a whole: tagged one by one, or as the literals of a syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dovetail.dialects import ARGUMENTS, Literals
from dovetail.layouts.styles import CONTROLS, Layout, Middle
from dovetail.parsing.layouts import Field, Quoted
from dovetail.templates.analysis.diff import ListLayout, list_layout
from dovetail.templates.analysis.probes import KEYS, NAMES, VALUES, Call
from dovetail.templates.analysis.spelling import find_spelling

Parts = tuple[str | Field, ...]
Turn = Callable[..., str]

_KEY = "\ue003"  # stands for a key that is written again behind its value
_NUMBER = 7342
_CONTROL_SAMPLES = "\x01\b\t\n\f\r"
_SAMPLES: dict[str, Any] = {
    "number": _NUMBER,
    "boolean": True,
    "null": None,
    "object": {KEYS[2]: VALUES[3]},
    "array": [VALUES[2], _NUMBER],
}
_BRACKETS = {"(": ")", "{": "}", "[": "]", "<": ">"}


@dataclass(frozen=True, slots=True)
class FoundArguments:
    """The parts of a call with its arguments as one field, what is left behind them, and their style."""

    parts: Parts
    rest: str
    style: Layout | Literals | Quoted
    pad: str = ""
    after: str = ""
    cdata: bool = False  # strings that would be mistaken for markup stand between the markers of character data


@dataclass(frozen=True, slots=True)
class _Sample:
    """A value of one kind: what stands between its key and it, how it is spelled, and what is behind it."""

    middle: str
    text: str
    behind: str
    python: bool


def find_arguments(turn: Turn, parts: Parts, call_end: str) -> FoundArguments | None:
    """The style of arguments, or None where nothing tells one from the next.

    `turn` renders calls, and `parts` ends with the last value of a call.
    """
    place = next((index for index, part in enumerate(parts) if isinstance(part, str) and KEYS[0] in part), None)
    if place is None:
        return None
    text = str(parts[place])
    head, _, rest = text.partition(KEYS[0])
    middle, _, rest = rest.partition(VALUES[0])
    at = rest.rfind(KEYS[1])
    between = rest[:at].replace(KEYS[0], _KEY)
    layout = list_layout(head, between, call_end.replace(KEYS[1], _KEY))
    samples = {kind: _sample(turn, value) for kind, value in _SAMPLES.items()}
    number = samples["number"]
    quote = _quote(middle, number.middle if number else middle, layout.end)
    if layout.separator.strip() and number and _is_quoted(middle, layout.end, number):
        return _all_quoted(parts[:place], layout, middle, samples)
    if quote and layout.end == quote:
        return _literals(turn, parts[:place], layout, samples, quote)
    ends = layout.end.removeprefix(quote).partition(_KEY)[0].strip()
    is_distinct = layout.begin.strip() and middle.strip() and ends
    if not is_distinct:
        return None
    arguments = _tagged(parts[:place], layout, middle, samples, quote)
    markup = "<" + VALUES[0] + ">&\n"
    return replace(arguments, cdata=f"<![CDATA[{markup}]]>" in turn(Call(NAMES[0], {KEYS[0]: markup})))


def _quote(middle: str, number: str, end: str) -> str:
    """What stands around strings and not around numbers."""
    if middle.startswith(number):
        return middle.removeprefix(number)
    # The markup tells the kinds apart, so that only quotes as such can be seen.
    return next((mark for mark in "\"'" if middle.endswith(mark) and end.startswith(mark) and number[-1:] != mark), "")


def _sample(turn: Turn, value: Any) -> _Sample | None:
    text = turn(Call(NAMES[0], {KEYS[0]: value, KEYS[1]: VALUES[1]}))
    seen = text.partition(NAMES[0])[2].partition(KEYS[0])[2].partition(KEYS[1])[0]
    if not seen:
        return None
    spelling = find_spelling(seen, value)
    if not spelling:
        return _Sample(seen, "", "", False)
    start, end, kind = spelling
    return _Sample(seen[:start], seen[start:end], seen[end:], kind == "python")


def _is_quoted(middle: str, end: str, number: _Sample) -> bool:
    """Whether numbers stand between the same quotes as strings."""
    return bool(end) and middle.endswith(end) and number.middle == middle and number.behind.startswith(end)


def _brackets(layout: ListLayout) -> tuple[str, str, str, str]:
    """What stands before the brackets of arguments, these, and what stands behind them."""
    opening = layout.open[-1:]
    begin = opening if opening in _BRACKETS else ""
    end = _BRACKETS.get(begin, "")
    before = layout.open[: len(layout.open) - len(begin)] + layout.begin
    return before, begin, end, layout.close.removeprefix(end)


def _all_quoted(
    parts: Parts, layout: ListLayout, middle: str, samples: dict[str, _Sample | None]
) -> FoundArguments | None:
    """Arguments of which each is text between quotes, numbers too."""
    before, begin, end, rest = _brackets(layout)
    quote = layout.end
    if not begin:
        return None
    python = tuple(
        kind for kind in ("boolean", "null", "object", "array") if (sample := samples[kind]) and sample.python
    )
    style = Quoted(begin, end, middle.removesuffix(quote), layout.separator, quote, python)
    return FoundArguments((*parts, *((before,) if before else ()), ARGUMENTS), rest, style)


def _literals(
    turn: Turn, parts: Parts, layout: ListLayout, samples: dict[str, _Sample | None], quote: str
) -> FoundArguments:
    number, boolean, null = samples["number"], samples["boolean"], samples["null"]
    assert number is not None
    before, begin, end, rest = _brackets(layout)
    nested = samples["object"]
    backwards = turn(Call(NAMES[0], {KEYS[1]: VALUES[1], KEYS[0]: VALUES[0]}))
    escapes = len(quote) == 1
    raw = _raw_controls(turn) if escapes else ""
    style = Literals(
        begin,
        end,
        number.middle,
        layout.separator,
        tuple(dict.fromkeys((quote, '"', "'"))) if escapes else (quote,),
        escapes,
        bare_keys=bool(nested and not nested.text),
        true="True" if boolean and boolean.python else "true",
        false="False" if boolean and boolean.python else "false",
        null="None" if null and null.python else "null",
        sorted_keys=backwards.find(KEYS[0]) < backwards.find(KEYS[1]),
        raw=raw,
        json_values=escapes and not raw and _is_json(samples) and layout.separator != ", ",
    )
    return FoundArguments((*parts, *((before,) if before else ()), ARGUMENTS), rest, style)


def _raw_controls(turn: Turn) -> str:
    """The control characters that are written into strings as they are; one stands for those without a short escape."""
    text = turn(Call(NAMES[0], {KEYS[0]: "".join(f"{VALUES[0]}{char}{VALUES[1]}" for char in _CONTROL_SAMPLES)}))
    raw = [char for char in _CONTROL_SAMPLES if f"{VALUES[0]}{char}{VALUES[1]}" in text]
    rare = [char for char in CONTROLS if char not in _CONTROL_SAMPLES and _CONTROL_SAMPLES[0] in raw]
    return "".join(sorted(raw + rare))


def _is_json(samples: dict[str, _Sample | None]) -> bool:
    """Whether values of all kinds are JSON."""
    return all(sample is not None and sample.text and not sample.python for sample in samples.values())


def _tagged(
    parts: Parts, layout: ListLayout, middle: str, samples: dict[str, _Sample | None], quote: str
) -> FoundArguments:
    stop, _, tail = layout.end.removeprefix(quote).partition(_KEY)
    if tail:
        cut = stop.rfind("</")
        cut = cut if cut > 0 else len(stop)
        stop, tail = stop[:cut], stop[cut:] + "{}" + tail
    pad = stop[: len(stop) - len(stop.lstrip())]
    pad = pad if middle.endswith(pad) else ""
    middles = {"string": middle.removesuffix(quote) if quote else middle}
    python: list[str] = []
    for kind, sample in samples.items():
        known = sample is not None and bool(sample.text)
        middles[kind] = sample.middle if known and sample is not None else middles.get("number", middles["string"])
        if sample is not None and known and sample.python and kind != "number":
            python.append(kind)
    array = samples["array"]
    item = _item(array, middles["string"], stop) if array is not None and not array.text else ""
    style = Layout(
        begin=layout.begin,
        middle={kind: _middle(text.removesuffix(pad) if pad else text) for kind, text in middles.items()},
        stop=stop.strip(),
        tail=tail,
        item=item,
        other_keys="none" if tail else "names",
        python=tuple(python),
        quoted=bool(quote),
    )
    after, rest = "", layout.close
    if layout.separator and not layout.separator.strip() and rest.startswith(layout.separator):
        after, rest = layout.separator, rest[len(layout.separator) :]
    opening = (layout.open,) if layout.open else ()
    arguments = FoundArguments((*parts, *opening, ARGUMENTS), rest, style, pad, after)
    trailing = stop[len(stop.rstrip()) :]
    return replace(arguments, after=trailing + arguments.after) if trailing else arguments


def _middle(text: str) -> Middle:
    """What stands between key and value, in the parts between which white space may stand."""
    return tuple(part for part in re.split(r"(?<=>)\s*(?=<)", text.strip()) if part) or ("",)


def _item(array: _Sample, middle: str, stop: str) -> str:
    """What opens an item of an array that is marked up itself, or nothing."""
    inside = array.middle.removeprefix(middle)
    head, separator, rest = inside.partition(VALUES[2])
    if not separator or not rest.startswith(stop.strip()):
        return ""
    return head.removesuffix(middle)
