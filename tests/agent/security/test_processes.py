"""Where the sandbox has namespaces, its processes see no others, and none of them outlives its command."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dovetail.agent.tools.shell import shell_tool
from tests.agent.security.test_names import rules_of, world_of
from tests.agent.security.test_repositories import WORKING
from tests.agent.tools.conftest import context_in, gone, run

ISOLATED = [kind for kind in WORKING if "without" not in kind]
# Processes that hide from those who look for what a call has started: without its mark, in a session of their own.
LEAVERS = [
    "env -i setsid sleep 62.25 & sleep 0.2",
    "(env -i setsid setsid sleep 62.25 &); sleep 0.2",
    'python3 -c \'import os; os.fork() or (os.setsid(), os.execve("/bin/sleep", ["sleep", "62.25"], {}))\'; sleep 0.2',
    "env -i setsid sleep 62.25 & sleep 30",
    "trap '' TERM HUP; env -i setsid sleep 62.25 & kill -9 $$",
]


def sleepers() -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes() == b"sleep\x0062.25\x00":
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", ISOLATED)
@pytest.mark.parametrize("command", LEAVERS)
def test_nothing_outlives_its_command(tmp_path: Path, kind: str, command: str) -> None:
    (tmp_path / "work").mkdir()
    rules = rules_of(tmp_path / "work", tmp_path)
    world = world_of(tmp_path, rules, kind)
    run(
        shell_tool(world.sandbox), {"command": command, "timeout": 2000}, context_in(rules.workspace, permissions=rules)
    )
    left = [pid for pid in sleepers() if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert [] == left
    world.sandbox.close()


@pytest.mark.parametrize("kind", ISOLATED)
def test_no_other_process_is_seen(tmp_path: Path, kind: str) -> None:
    (tmp_path / "work").mkdir()
    world = world_of(tmp_path, rules_of(tmp_path / "work", tmp_path), kind)
    assert int(world.run("ls -d /proc/[0-9]* | wc -l")) < 9
    assert world.run("cat /proc/$$/comm; true") == "bash\n"  # its own number is the one that it knows
    world.sandbox.close()


@pytest.mark.parametrize("kind", WORKING)
@pytest.mark.parametrize(("command", "said"), [("exit 3", "exit code: 3"), ("kill -9 $$", "exit code: 137")])
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, kind: str, command: str, said: str) -> None:
    (tmp_path / "work").mkdir()
    rules = rules_of(tmp_path / "work", tmp_path)
    world = world_of(tmp_path, rules, kind)
    context = context_in(rules.workspace, permissions=rules)
    answer = run(shell_tool(world.sandbox), {"command": f"bash -c '{command}'; exit $?"}, context).content
    assert said in answer
    world.sandbox.close()
