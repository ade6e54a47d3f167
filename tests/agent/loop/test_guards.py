"""Guards against loops, and the budgets of a run."""

from __future__ import annotations

import pytest

from dovetail.agent.loop.budget import parse_count, parse_duration
from dovetail.agent.loop.guards import LoopGuard
from dovetail.agent.types import ToolUse
from dovetail.errors import InputError


def use(name: str = "read", **value: object) -> ToolUse:
    return ToolUse.of("id", name, value)


def stopped_at(uses: list[ToolUse], max_calls: int | None = None) -> int | None:
    """The number of the call that is not made."""
    guard = LoopGuard(max_calls)
    return next((number for number, each in enumerate(uses, 1) if guard.see(each)), None)


def test_five_calls_alike_in_a_row_are_a_loop() -> None:
    assert 5 == stopped_at([use(a=1)] * 9)
    assert 5 == stopped_at([use(a=1, b=2), use(b=2, a=1)] * 4)  # the order of keys makes no difference
    assert None is stopped_at([use(a=1)] * 4)


def test_six_calls_alike_in_all_are_a_loop() -> None:
    assert 11 == stopped_at([use(a=1), use(a=2)] * 9)


def test_commands_that_differ_only_in_numbers_are_alike() -> None:
    assert 8 == stopped_at([use("run_shell_command", command=f"sleep {i}") for i in range(20)])
    assert None is stopped_at([use("run_shell_command", command=f"echo {'x' * i}") for i in range(20)])


def test_many_calls_are_a_loop_once_they_repeat_and_too_many_are_one_anyway() -> None:
    different = [use(a=i) for i in range(2000)]
    assert 1001 == stopped_at(different)
    assert 151 == stopped_at([*different[:150], different[0]])
    assert 4 == stopped_at(different, max_calls=3)
    assert None is stopped_at(different, max_calls=0)


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
