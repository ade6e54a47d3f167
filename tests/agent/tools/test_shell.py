"""The shell tool: output, limits, and processes that a command leaves behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.tools.shell import SHELL, Capped
from dovetail.agent.types import ToolError, ToolLimits
from tests.agent.tools.conftest import Call, alive, context_in, gone, pids, working_in

OUTPUTS = [
    ("echo hi", "hi\n[exit code: 0]"),
    ("printf hi", "hi\n[exit code: 0]"),
    ("true", "(no output)\n[exit code: 0]"),
    ("echo err >&2; exit 3", "err\n[exit code: 3]"),
    ("kill -9 $$", "(no output)\n[ended by signal SIGKILL]"),
    ("printf '\\xff'", "�\n[exit code: 0]"),
    ("echo ü 日本", "ü 日本\n[exit code: 0]"),
    ("cat", "(no output)\n[exit code: 0]"),
    ("[[ a == a ]] && echo bash", "bash\n[exit code: 0]"),
]


@pytest.mark.parametrize(("command", "content"), OUTPUTS)
def test_output_and_exit_code_are_told(call: Call, command: str, content: str) -> None:
    output = call("run_shell_command", command=command)
    assert content == output.content
    assert not output.is_error


def test_it_runs_in_the_folder_that_is_asked_for(call: Call, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert f"{tmp_path.resolve()}/d\n" in call("run_shell_command", command="pwd", directory="d").content
    with pytest.raises(ToolError, match="outside"):
        call("run_shell_command", command="pwd", directory="..")
    with pytest.raises(ToolError, match="cannot be started"):
        call("run_shell_command", command="pwd", directory="absent")


def test_a_command_that_takes_too_long_is_ended_with_all_its_children(call: Call, tmp_path: Path) -> None:
    command = "sleep 60 & echo $! $$ > pids; trap '' TERM; echo before; wait; sleep 60"
    output = call("run_shell_command", command=command, timeout=300)
    assert output.is_error
    assert "before\n[stopped after 0.3 s]" == output.content
    assert all(gone(pid) for pid in pids(tmp_path / "pids", 2))


def test_what_is_left_in_the_background_is_ended(call: Call, tmp_path: Path) -> None:
    output = call("run_shell_command", command="sleep 60 & echo $! > pids; echo started")
    assert "started\n[exit code: 0]" == output.content
    assert all(gone(pid) for pid in pids(tmp_path / "pids", 1))


def test_what_leaves_the_group_is_ended_too(call: Call, tmp_path: Path) -> None:
    call("run_shell_command", command="setsid nohup sh -c 'echo $$ > pids; sleep 60' > /dev/null 2>&1 & sleep 0.3")
    assert all(gone(pid) for pid in pids(tmp_path / "pids", 1))


def test_who_forks_while_it_is_being_ended_is_ended_with_all_children(call: Call, tmp_path: Path) -> None:
    forking = "setsid sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait' > /dev/null 2>&1 &"
    for _ in range(5):
        call("run_shell_command", command=forking)
    assert all(gone(pid) for pid in working_in(tmp_path))


def test_a_cancelled_run_ends_the_command(tmp_path: Path) -> None:
    async def cancelled() -> str:
        context = context_in(tmp_path)
        asyncio.get_running_loop().call_later(0.2, context.cancel.set)
        output = await SHELL.run({"command": "echo $$ > pids; sleep 60"}, context)
        assert output.is_error
        return output.content

    assert "(no output)\n[cancelled]" == asyncio.run(cancelled())
    assert all(gone(pid) for pid in pids(tmp_path / "pids", 1))


def test_a_cancelled_task_ends_the_command_first(tmp_path: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(
            SHELL.run({"command": "echo $$ > pids; trap '' TERM; sleep 60"}, context_in(tmp_path))
        )
        while not (tmp_path / "pids").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # twice: an impatient caller changes nothing
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(not alive(pid) for pid in pids(tmp_path / "pids", 1))

    asyncio.run(cancelled())


def test_endless_output_is_bounded(call: Call, tmp_path: Path) -> None:
    context = context_in(tmp_path, limits=ToolLimits(timeout_s=20, max_output_bytes=1000))
    content = call("run_shell_command", context, command="seq 200000").content
    assert content.startswith("1\n2\n3\n")
    assert content.endswith("199999\n200000\n[exit code: 0]")
    assert "bytes left out" in content
    assert len(content) < 1100


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 60))
def test_the_head_and_the_tail_are_kept_however_they_come(chunks: list[bytes], limit: int) -> None:
    capped = Capped(limit)
    for chunk in chunks:
        capped.feed(chunk)
    data = b"".join(chunks)
    head, tail = limit // 5, limit - limit // 5
    gap = f"\n[... {len(data) - limit} bytes left out ...]\n".encode()
    expected = data if len(data) <= limit else data[:head] + gap + data[-tail:]
    assert expected.decode("utf-8", "replace") == capped.text()


@pytest.mark.parametrize("command", ["", "  ", "a\0b"])
def test_what_is_no_command_is_refused(call: Call, command: str) -> None:
    with pytest.raises(ToolError, match="empty or holds"):
        call("run_shell_command", command=command)


def test_the_command_knows_that_it_runs_for_a_model(call: Call) -> None:
    assert "1 cat" in call("run_shell_command", command="echo $DOVETAIL $PAGER").content
    assert os.environ.get("DOVETAIL") is None
