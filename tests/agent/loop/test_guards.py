"""Guards against loops, and the budgets of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dovetail.agent.loop.budget import parse_count, parse_duration
from dovetail.agent.loop.guards import LoopGuard
from dovetail.agent.types import LoopLimits, ToolResult, ToolUse
from dovetail.errors import InputError


def use(name: str = "read", **value: object) -> ToolUse:
    return ToolUse.of("id", name, value)


def stopped_at(
    uses: list[ToolUse],
    max_calls: int | None = None,
    limits: LoopLimits | None = None,
    results: Callable[[int], str] = lambda _: "the same",
    status: Any = "ok",
) -> int | None:
    """The number of the call that is not made."""
    guard = LoopGuard(limits, max_calls)
    for number, each in enumerate(uses, 1):
        if guard.see(each):
            return number
        guard.learn([each], [ToolResult(each.id, each.name, results(number), status=status)])
    return None


def test_five_calls_alike_in_a_row_are_a_loop() -> None:
    assert 5 == stopped_at([use(a=1)] * 9)
    assert 5 == stopped_at([use(a=1, b=2), use(b=2, a=1)] * 4)  # the order of keys makes no difference
    assert None is stopped_at([use(a=1)] * 4)


def test_six_calls_alike_in_all_are_a_loop() -> None:
    assert 11 == stopped_at([use(a=1), use(a=2)] * 9)


def test_another_argument_is_progress_even_where_it_is_only_a_number() -> None:
    assert None is stopped_at([use("run_shell_command", command=f"sed -n {i}p a.txt") for i in range(20)])


def test_too_many_calls_are_a_loop_whatever_they_are() -> None:
    different = [use(a=i) for i in range(2000)]
    assert 1001 == stopped_at(different)
    assert None is stopped_at([*different[:150], different[0]])
    assert 4 == stopped_at(different, max_calls=3)
    assert None is stopped_at(different, max_calls=0)


def test_the_limits_are_those_of_the_settings() -> None:
    alike = [use(a=1)] * 2000
    assert 3 == stopped_at(alike, limits=LoopLimits(in_a_row=3))
    assert 7 == stopped_at(alike, limits=LoopLimits(in_a_row=-1, in_all=7))
    assert 1001 == stopped_at(alike, limits=LoopLimits(in_a_row=-1, in_all=-1))
    assert None is stopped_at(alike, limits=LoopLimits(-1, -1, -1))


TESTS = use("run_shell_command", command="pytest -q")


def test_a_changed_result_is_progress() -> None:
    assert None is stopped_at([TESTS] * 50, results=lambda number: f"{number} passed")
    # One change gives as many more calls as there were from the start.
    assert 8 == stopped_at([TESTS] * 50, results=lambda number: "red" if number < 4 else "green")


def test_an_edit_in_between_is_progress() -> None:
    edits = [use("edit", file_path="a.py", old_string=str(i), new_string=str(i + 1)) for i in range(50)]
    work = [call for edit in edits for call in (edit, TESTS)]
    assert None is stopped_at(work)
    there = use("edit", file_path="a.py", old_string="a", new_string="b")
    back = use("edit", file_path="a.py", old_string="b", new_string="a")
    assert 16 == stopped_at([there, TESTS, back] * 20)  # edits that undo each other are not
    assert 11 == stopped_at([there, TESTS] * 20, status="error")  # nor are edits that failed


@pytest.mark.parametrize(("text", "seconds"), [("1.5h", 5400), ("90", 90), ("2 M", 120), ("1000ms", 1), ("30S", 30)])
def test_durations_are_read(text: str, seconds: float) -> None:
    """Scenario 23, the other half."""
    assert seconds == parse_duration(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "0.5", "999ms", "1d", "1h30m", "nan", "inf", "2147484", "٣"])
def test_durations_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--max-wall-time: "):
        parse_duration(text)


@pytest.mark.parametrize(("text", "number"), [("-1", -1), ("0", 0), ("1000000", 1_000_000)])
def test_counts_are_read(text: str, number: int) -> None:
    """Scenario 24, the other half."""
    assert number == parse_count(text)
