from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.agent.commands import CommandError, host, simple_commands

RUNS = [
    # text, a line that must be among those run
    ("ls -la && rm x", "rm x"),
    ("ls; rm x", "rm x"),
    ("ls | rm x", "rm x"),
    ("ls & rm x", "rm x"),
    ("ls\nrm x", "rm x"),
    ("(cd a; rm x)", "rm x"),
    ("{ rm x; }", "rm x"),
    ("echo $(rm x)", "rm x"),
    ('echo "a $(rm x) b"', "rm x"),
    ("echo `rm x`", "rm x"),
    (r"echo `echo \`rm x\``", "rm x"),
    ("echo ${A:-$(rm x)}", "rm x"),
    ("echo $((1 + $(rm x)))", "rm x"),
    ("diff <(rm x) y", "rm x"),
    ("cat <<E\n$(rm x)\nE", "rm x"),
    ("cat <<-E\n\tbody\n\tE\nrm x", "rm x"),
    ("r''m x", "rm x"),
    (r"r\m x", "rm x"),
    ("rm\\\n x", "rm x"),
    (r"$'\x72\155' x", "rm x"),
    ("A=1 rm x", "rm x"),
    ("sudo -u root rm x", "rm x"),
    ("env A=1 timeout -k 5 10 rm x", "rm x"),
    ("nohup nice -n 5 rm x", "rm x"),
    ("bash -lc 'rm x'", "rm x"),
    ("sh -c \"eval 'rm x'\"", "rm x"),
    ("if true; then rm x; fi", "rm x"),
    ("for f in a b; do rm x; done", "rm x"),
    ("! rm x", "rm x"),
    ("find . -exec rm x {} +", "rm x {} +"),
    ("echo a | xargs -n 1 rm", "rm"),
    ("2>/dev/null rm x", "rm x"),
    ("echo hi # c\nrm x", "rm x"),
    ("bash -c \"$'\\x72m' x\"", "rm x"),
    ('echo $((1 + $("rm" x)))', "rm x"),
    ('cat <<E\n$("rm" x)\nE', "rm x"),
    ("cat <((rm x))", "rm x"),
    ("echo $( (rm x) )", "rm x"),
    ("trap 'rm x' EXIT", "rm x"),
    ("env -S 'rm x'", "rm x"),
    ("coproc N { rm x; }", "rm x"),
    ("time -p rm x", "rm x"),
    ("sudo -n rm x", "rm x"),
    ("sudo -E -u root nice -n 5 rm x", "rm x"),
    ("find . -exec true {} + -exec rm x", "rm x"),
]
DOES_NOT_RUN = [
    # text, a line that must not be among those run
    ("echo 'rm x'", "rm x"),
    ('echo "; rm x"', "rm x"),
    ("echo # ; rm x", "rm x"),
    ("cat <<'E'\n$(rm x)\nE", "rm x"),
    (r"echo \; rm x", "rm x"),
]
UNREADABLE = ["echo 'a", 'echo "a', "echo `a", "echo $(a", "echo ${a", "$'a", "x" * 70_000, "$(" * 40 + ")" * 40,
              'echo "${' * 40, "env " * 100 + "x"]  # fmt: skip


def lines(text: str) -> set[str]:
    return {
        line
        for command in simple_commands(text)
        for line in (command.line, *(" ".join(words) for words in command.inner()))
    }


@pytest.mark.parametrize(("text", "line"), RUNS)
def test_what_would_run_is_found(text: str, line: str) -> None:
    assert line in lines(text)


@pytest.mark.parametrize(("text", "line"), DOES_NOT_RUN)
def test_what_is_only_text_is_not_found(text: str, line: str) -> None:
    assert line not in lines(text)


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_said_to_be_so(text: str) -> None:
    with pytest.raises(CommandError):
        simple_commands(text)


TOUCHED = [
    ("cat a b", {("read", "a"), ("read", "b")}),
    ("echo x > out", {("write", "out")}),
    ("echo x >> out 2>&1", {("write", "out")}),
    ("echo x &> out", {("write", "out")}),
    ("sort < in", {("read", "in")}),
    ("sudo tee out", {("write", "out")}),
    ("curl -s https://a.example/x", {("fetch", "https://a.example/x")}),
    ("wget a.example", {("fetch", "https://a.example")}),
    ("dd if=x of=y", {("write", "x"), ("write", "y")}),
    ("echo x", set()),
]


@pytest.mark.parametrize(("text", "expected"), TOUCHED)
def test_files_and_sites_that_a_command_implies(text: str, expected: set[tuple[str, str]]) -> None:
    assert expected == {pair for command in simple_commands(text) for pair in command.touched()}


@pytest.mark.parametrize("text", ["$X y", '"$X" y', "`which rm` y", "A=1 $X", "${X}m y"])
def test_a_name_that_the_shell_makes_up_is_marked(text: str) -> None:
    assert any(command.dynamic for command in simple_commands(text))


def test_an_argument_that_the_shell_makes_up_is_not() -> None:
    assert not any(command.dynamic for command in simple_commands("A=$B echo $X"))


@pytest.mark.parametrize(
    ("address", "name"), [("https://A.example:8/x", "a.example"), ("http://[bad", ""), ("x", ""), ("http://a./", "a")]
)
def test_the_host_of_an_address(address: str, name: str) -> None:
    assert name == host(address)


SPELLINGS = [
    "rm x",
    "rm",
    "r''m x",
    r"\rm x",
    '"rm" x',
    r"$'\x72m' x",
    "A=1 rm x",
    "{rm,x}",
    "X=rm; $X x",
    "RM=m; r$RM x",
]
PLACES = [
    "%s",
    "true && %s",
    "false || %s",
    "true | %s",
    "(%s)",
    "{ %s; }",
    "! { %s; }",
    "if true; then %s; fi",
    "for i in 1; do %s; done",
    "case x in x) %s;; esac",
    "while %s; do break; done",
    "f() { %s; }; f",
    "function g { %s; }; g",
    "coproc N { %s; }; wait",
    "echo $(%s)",
    'echo "$(%s)"',
    "echo `%s`",
    "echo ${A:-$(%s)}",
    "echo $((1 + $(%s; echo 1)))",
    "echo $( (%s) )",
    "cat <(%s)",
    "cat <<E\n$(%s)\nE",
    "eval '%s'",
    "sh -c '%s'",
    'bash -ec "%s"',
    "trap '%s' EXIT",
    "time %s",
    "echo a # b\n%s",
    "echo 'it''s'; %s",
    "env A=1 sh -c '%s'",
    "timeout -s KILL 5 sh -c '%s'",
    "echo a | xargs -I{} sh -c '%s'",
    "let 'a[$(%s; echo 1)]=1'",
    "env -S \"sh -c '%s'\"",
    "echo '%s' | sh",
]


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the few programs of the places above, and an `rm` that only leaves a mark."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("bash", "sh", "env", "xargs", "timeout", "cat", "true", "false"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    (folder / "rm").write_text(f"#!/bin/sh\n: > {folder}/ran\n")
    (folder / "rm").chmod(0o755)
    return folder


@settings(max_examples=60)
@given(st.sampled_from(SPELLINGS), st.lists(st.sampled_from(PLACES), max_size=2))
def test_what_bash_really_runs_is_found(trap: Path, spelling: str, places: list[str]) -> None:
    text = spelling
    for place in places:
        text = place.replace("%s", text)
    mark = trap / "ran"
    mark.unlink(missing_ok=True)
    shell = ["/bin/bash", "-c", text]
    subprocess.run(shell, env={"PATH": str(trap)}, cwd=trap, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if mark.exists():
        with contextlib.suppress(CommandError):
            commands = simple_commands(text)
            found = any(line == "rm" or line.startswith("rm ") for line in lines(text))
            assert found or any(command.dynamic for command in commands)


@given(st.text("ab '\"\\$(){}`;|&<>#\n=x1-", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(CommandError):
        simple_commands(text)
