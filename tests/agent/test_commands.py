"""Shell commands taken apart: what a line would run, what it reads and writes, and what cannot be known."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.agent.commands import CommandError, covers, host, plain_commands, simple_commands

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
              'echo "${' * 40, "env " * 100 + "x",
              "coproc N { rm x; }", "a|" * 30_000, "{rm,x}", "echo a\0b"]  # fmt: skip


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


PLAIN = [
    ("git status", [("git", "status")]),
    ("git status && ls -la | wc -l; echo 'a b' \"c d\"e || true", [
        ("git", "status"), ("ls", "-la"), ("wc", "-l"), ("echo", "a b", "c de"), ("true",)]),
    ("pytest -q 2>&1 >/dev/null </dev/null", [("pytest", "-q")]),
    ("pytest &> /dev/null", [("pytest",)]),
    ("git diff HEAD~1 -- src/a-b_c.py @{", None),
    ("git diff HEAD~1 HEAD^ -- src/a-b_c.py", [("git", "diff", "HEAD~1", "HEAD^", "--", "src/a-b_c.py")]),
    ("git commit -m 'line one\n\nline $two `x`'", [("git", "commit", "-m", "line one\n\nline $two `x`")]),
    (r"""grep -E "\bword\b" 'größe' größe.txt""", [("grep", "-E", r"\bword\b", "größe", "größe.txt")]),
    (r'''echo "say \"hi\" \\"''', [("echo", 'say "hi" \\')]),
    ("echo ''", [("echo", "")]),
]  # fmt: skip
NOT_PLAIN = [
    "", " ", ";", "ls &", "ls & rm x", "ls\nrm x", "ls $X", "ls ${X}", "ls $(rm x)", "ls `rm x`", "ls \"$X\"",
    "ls \"`x`\"", "ls \"$(rm x)\"", "ls <(rm x)", "ls > x", "ls >> x", "ls 1<>x", "ls >| x",
    "ls > /dev/null/../x", "ls > /dev/nullx", "ls &> x", "ls < x", "ls >& x", "ls 2>&x", "ls 3>&1",
    "cat <<E\nx\nE", "cat <<\\\nE\n$(x)\nE", "cat <<${A}\nx\n${A}", "cat <<< x", "A=1 ls", "A=1", "(ls)",
    "{ ls; }", "! ls", "if true; then ls; fi", "for i in a; do ls; done", "time ls", "while ls; do ls; done",
    "coproc ls", "f() { ls; }", "function f { ls; }", "[[ a ]]", "[ a ]", "((1))", "ls *.py", "ls ?", "ls [a]",
    "ls {a,b}", "ls ~", "ls ~/x", "ls a=~/x", "ls a:~/x", "r\\m x", "$'\\x72m' x", "$\"ls\"", "ls # x",
    "echo a#b", "ls |& rm", "ls \\\n-l", "ls\r", "git\u00a0status", "git\u2003status", "ls\u0000", "ls 'open",
    "ls \"open", "ls >/dev/null rm", "echo \"a\\$b\"", "case x in x) ls;; esac", "select x in a; do ls; done",
    "ls;;", "&& ls", "ls &&", "ls | | rm", "!!", "ls \ud800",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PLAIN)
def test_the_words_of_plain_commands(text: str, expected: list[tuple[str, ...]] | None) -> None:
    if expected is None:
        with pytest.raises(CommandError):
            plain_commands(text)
    else:
        assert expected == plain_commands(text)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_anything_else_is_not_plain(text: str) -> None:
    with pytest.raises(CommandError):
        plain_commands(text)


@given(
    st.lists(
        st.sampled_from([*NOT_PLAIN, "ls -l", "'a b'", '"x y"', " && ", ";", "|", "x", "2>&1", ">/dev/null"]),
        max_size=5,
    )
)
def test_plain_commands_run_as_their_words_say(trap: Path, parts: list[str]) -> None:
    """bash itself, told to print the words of each command instead of running it, sees the same words."""
    text = "".join(parts)
    try:
        commands = plain_commands(text)
    except CommandError:
        return
    # Every command that the shell looks up and does not find is told to this function, one word a line.
    report = 'command_not_found_handle() { printf "%s\\0" "$@" "" >&9; }; exec 9>&1;'
    done = subprocess.run(
        ["/bin/bash", "-c", f"{report} {text}"], env={"PATH": "/none"}, cwd=trap, capture_output=True, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    ran = [tuple(one.split("\0")) for one in done.stdout.decode(errors="surrogateescape").split("\0\0") if one]
    assert all(words in commands for words in ran)


COVERS = [
    ("git status", "git status", True),
    ("git status", "git status -s", False),
    ("git status *", "git status", True),
    ("git status *", "git status -s", True),
    ("git status:*", "git status -s", True),
    ("git*", "gitk x", True),
    ("git *", "gitk", False),
    ("git *", "'git ' x", False),
    ("git *", "'git status'", False),
    ("git *", "'git /x' y", False),
    ("git *", "/tmp/git status", False),
    ("npm*", "npm/evil x", False),
    ("./scripts/*", "./scripts/check -v", True),
    ("./scripts/*", "./scripts/../evil", False),
    ("./scripts/*", "./scripts/sub/evil", False),
    ("git commit -m *", "git commit -m 'a b'", True),
    ("npm run 'a b'", "npm run 'a b'", True),
    ("npm run 'a b'", "npm run a b", False),
    ("git *", "git -c alias.z='!x' z", False),
    ("git *", "git -c core.pager=x log", False),
    ("git *", "git -C sub status", False),
    ("git *", "git --exec-path=/tmp status", False),
    ("git *", "git diff --ext-diff", False),
    ("git *", "git diff --output=x", False),
    ("git *", "git grep -Ox y", False),
    ("git *", "git config alias.z '!x'", False),
    ("git *", "git rebase -x x", False),
    ("git *", "git bisect run x", False),
    ("git *", "git submodule foreach x", False),
    ("git *", "git clone ext::x", False),
    ("git *", "git switch -c new", True),
    ("git *", "git log --oneline -5", True),
    ("git -c color.ui=never *", "git -c color.ui=never log", True),
    ("find *", "find . -name x", True),
    ("find *", "find . -exec rm x", False),
    ("find *", "find . -delete", False),
    ("env *", "env rm x", False),
    ("timeout *", "timeout 5 rm x", False),
    ("timeout 60 pytest *", "timeout 60 pytest -q", True),
    ("xargs *", "xargs rm", False),
    ("printf *", "printf -v 'a[$(x)]' y", False),
    ("echo *", "echo hello", True),
    ("it's *", "its x", False),
]


@pytest.mark.parametrize(("pattern", "text", "covered"), COVERS)
def test_what_the_pattern_of_an_allow_rule_covers(pattern: str, text: str, covered: bool) -> None:
    assert covered == all(covers(pattern, words) for words in plain_commands(text))
