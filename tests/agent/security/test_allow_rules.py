"""Without a sandbox, allow rules alone run nothing that they do not name.

Each command would run `./pwn`, which leaves a mark, or leave one itself. What the rules let through is run for real: in
a sandbox that was seen to hold, in which the test's own folder can be changed, so that a hole does no harm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.sandbox import open_sandbox
from dovetail.agent.settings import ContextSettings, Settings
from tests.agent.security.attacks import ARGUMENTS, ORDINARY, commands
from tests.agent.security.programs import FED, STARTING, USUAL, WRAPPING

ALLOWED = (
    "Bash(git status)",
    "Bash(git log *)",
    "Bash(git diff:*)",
    "Bash(git grep *)",
    "Bash(ls *)",
    "Bash(cat a.txt)",
    "Bash(echo *)",
    "Bash(printf *)",
    "Bash(test *)",
    "Bash(find *)",
    "Bash(sort *)",
    "Bash(tar *)",
    "Bash(env *)",
    "Bash(xargs *)",
    "Bash(timeout *)",
    "Bash(nice *)",
    "Bash(cd *)",
    "Bash(./check)",
    "Bash(./tools/*)",
    "Bash(npm*)",
    "Bash(true)",
)

TRICKS = r"""
./pwn
git status; ./pwn
git status && ./pwn
git status || ./pwn
git status | ./pwn
git status & ./pwn
git status |& ./pwn
true; ./pwn
true && true && true && ./pwn
echo $(./pwn)
echo "$(./pwn)"
echo `./pwn`
echo "`./pwn`"
echo ${X:-$(./pwn)}
echo "${X:=$(./pwn)}"
echo $((1 + $(./pwn; echo 1)))
echo <(./pwn)
echo > >(./pwn)
cat a.txt > pwned
cat a.txt >> pwned
cat a.txt >| pwned
cat a.txt &> pwned
cat a.txt &>> pwned
cat a.txt >& pwned
cat a.txt 1<>pwned
git status 1<>pwned
git status 2>pwned
git status >pwned
git status > $PWD/pwned
git status > $(echo pwned)
git status > ~/pwned
git status > "$HOME"/pwned
git status > /dev/null/../pwned
git status > /dev/null > pwned
git status > pwned 2> /dev/null
git status 2>&1 > pwned
{ ./pwn; }
(./pwn)
! ./pwn
if true; then ./pwn; fi
while ./pwn; do break; done
until ./pwn; do break; done
for x in 1; do ./pwn; done
for x in 1; do echo $x; ./pwn; done
case x in x) ./pwn;; esac
select x in 1; do ./pwn; done < /dev/null
f() { ./pwn; }; f
function echo { ./pwn; }; echo
echo() { ./pwn; }; echo
ls() { ./pwn; }; ls -la
coproc ./pwn
time ./pwn
[[ -z $(./pwn) ]]
[ -z $(./pwn) ]
((x[$(./pwn)]=1))
let 'x[$(./pwn)]=1'
test -v 'x[$(./pwn)]'
printf -v 'x[$(./pwn)]' y
X=1 ./pwn
PATH=. pwn
PATH=.:$PATH git status
GIT_EXTERNAL_DIFF=./pwn git diff:x
GIT_PAGER=./pwn git log -p
LD_PRELOAD=./pwn.so git status
BASH_ENV=./pwn bash -c true
export PATH=.; pwn
eval ./pwn
eval "./pwn"
exec ./pwn
command ./pwn
builtin eval ./pwn
source ./pwn
. ./pwn
trap ./pwn EXIT
alias true=./pwn
bash -c ./pwn
sh ./pwn
env ./pwn
env -i ./pwn
env X=1 ./pwn
env -S ./pwn
xargs ./pwn
echo x | xargs ./pwn
timeout 5 ./pwn
nice ./pwn
nice -n 5 ./pwn
nohup ./pwn
setsid ./pwn
find . -name a.txt -exec ./pwn ;
find . -name a.txt -exec ./pwn {} +
find . -name a.txt -execdir ./pwn '{}' ';'
find . -maxdepth 0 -exec ./pwn ';'
find . -ok ./pwn ';'
find . -maxdepth 0 -fprint pwned
find . -maxdepth 0 -fprintf pwned x
find . -maxdepth 0 -fls pwned
sort a.txt -o pwned
sort -opwned a.txt
sort --output=pwned a.txt
sort --compress-program=./pwn -S 1 a.txt
tar cf pwned.tar a.txt --checkpoint=1 --checkpoint-action=exec=./pwn
tar cf /dev/null a.txt -I ./pwn
tar cf x.tar --use-compress-program=./pwn a.txt
git -c alias.z='!./pwn' z
git -c core.pager=./pwn log
git -c core.fsmonitor=./pwn status
git -c diff.external=./pwn diff
git --exec-path=. pwn
git --config-env=core.pager=X log
git -C evil status
git --git-dir=evil status
git log --output=pwned
git log -1 --output pwned
git diff --output=pwned
git diff --no-index --ext-diff a.txt evil
git diff --textconv
git grep -O./pwn alpha
git grep --open-files-in-pager=./pwn alpha
git config alias.z '!./pwn'
git status --porcelain; git submodule foreach ./pwn
git rebase -x ./pwn HEAD
git bisect run ./pwn
git difftool -x ./pwn
'git status' pwn
"git status"; "./pwn"
'git ' status
git' 'status
git\ status
./'pwn'
.''/pwn
./p*
./pw?
./pw[n]
./{pwn,x}
$PWD/pwn
~/pwn
~+/pwn
\./pwn
$'./pwn'
$"./pwn"
$'\x2e/pwn'
$(echo ./pwn)
`echo ./pwn`
${X:-./pwn}
./tools/../pwn
./tools/sub/pwn
./tools/.././pwn x
npm/pwn
npm-x/../pwn
cd evil && ./check
cd evil; ./check
cd evil | true; ./check
cd evil && ./tools/run
pushd evil && ./check
echo x # ; ./pwn
echo x\
./pwn
echo 'x
' ; ./pwn
echo "x
"; ./pwn
git	status; ./pwn
git status;./pwn
git status&&./pwn
git status||./pwn
git status|./pwn
git status;;./pwn
ls -la |./pwn
ls -la <./pwn >pwned
<a.txt ./pwn
>pwned ls -la
2>pwned ls -la
ls -la 3>pwned >&3
"""

# Several lines each: here-documents, and words that a line break ends for one reader and not for another.
LONG_TRICKS = [
    "cat <<E\n$(./pwn)\nE",
    "cat <<-E\n\t$(./pwn)\n\tE",
    "cat <<'E'\nx\nE\n./pwn",
    "cat <<\\E\nx\nE\n./pwn",
    "cat <<\\\nE\n'\nE\n./pwn",
    "cat <<E\\\nF\nE\n$(./pwn)\nEF",
    "cat <<${A}\n'\n${A}\n./pwn",
    "cat <<'E' > pwned\nx\nE",
    "cat <<E; ./pwn\nx\nE",
    "cat a.txt <<'E'\n'\nE\n./pwn",
    "cat <<< $(./pwn)",
    "cat <<< x > pwned",
    "git status\n./pwn",
    "git status\r./pwn",
    "git status\r\n./pwn",
    "git status \\\n; ./pwn",
    "git status\n\n\n./pwn # x",
    "git status\x0b./pwn",
    "git status\x0c./pwn",
    "git\xa0status; ./pwn",
    "git\u2003status",
    "git\u2028./pwn",
    "echo x\x00; ./pwn",
    "echo 'x\n' && ./pwn",
    'echo "x\n$(./pwn)"',
    "ls -la;\n./pwn",
    "ls -la |\n./pwn",
    "ls -la &&\n./pwn",
    "x=1\n./pwn",
    "true" + " && true" * 400 + " && ./pwn",
    "echo " + "a" * 70_000 + "; ./pwn",
]

# What the rules name runs: without these the tests above would also pass if nothing ran at all.
NAMED = [
    "git status",
    "git log --oneline -1",
    "git diff --stat",
    "git log -1 | sort",
    "ls -la && cat a.txt",
    "echo 'a; ./pwn'",
    "ls -la 2>&1 | sort -r > /dev/null",
    "./check",
    "./tools/run -v",
    "cd evil && ls -la",
    "find . -name a.txt",
    "printf '%s\\n' 'x y' || true",
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("template")
    for name in (
        "pwn",
        "evil/check",
        "evil/tools/run",
        "tools/sub/pwn",
        "npm/pwn",
        "npm-x/pwn",
        "git /pwn",
        "evil/git",
    ):
        _program(work / name, 'touch "$HOME/pwned"')
    for name in ("check", "tools/run"):
        _program(work / name, "echo named")
    (work / "a.txt").write_text("alpha\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y"]
    for arguments in (["init", "-q", "--template="], ["add", "a.txt"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], cwd=work, check=True)
    return work


def _program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "work"))


def verdict(workspace: Path, command: str, allowed: tuple[str, ...], folder: str | None = None) -> str:
    """What the rules say to a command."""
    rules = Rules.of(Settings(), ToolFlags(approval_mode="default", allowed=allowed), workspace, home=workspace.parent)
    return rules.decide(
        "run_shell_command", {"command": command} | ({"directory": folder} if folder else {}), False
    ).verdict


def ran(workspace: Path, command: str, folder: str | None = None, allowed: tuple[str, ...] = ALLOWED) -> str | None:
    """What the command says where the rules let it run, None where they do not."""
    if verdict(workspace, command, allowed, folder) != "allow":
        return None
    return in_the_open(workspace, command, folder)


def in_the_open(workspace: Path, command: str, folder: str | None = None) -> str:
    """What a command says that may change everything of this test, and nothing else."""
    base = workspace.parent
    settings = Settings(context=ContextSettings(include_directories=(str(base),)))
    rules = Rules.of(settings, ToolFlags(approval_mode="yolo"), workspace / "nowhere", home=base / "home")
    (workspace / "nowhere").mkdir(exist_ok=True)
    sandbox, _ = open_sandbox("required", rules)
    canary = base.parent / f"canary-{os.getpid()}"

    def run(text: str) -> str:
        with sandbox.confined(["/bin/bash", "-c", text], workspace / (folder or ".")) as launch:
            done = subprocess.run(
                launch.words,
                cwd=workspace / (folder or "."),
                env={"PATH": os.environ["PATH"], "HOME": str(base), "GIT_PAGER": "cat", **launch.variables},
                pass_fds=launch.descriptors,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60,
            )
        return done.stdout.decode("utf-8", "replace")

    try:
        assert "alive" in run(f"touch '{canary}'; echo alive")
        assert not canary.exists()
        return run(command)
    finally:
        sandbox.close()


def marks(workspace: Path) -> list[Path]:
    """What a trick that worked leaves behind."""
    return [path for path in workspace.parent.rglob("*") if path.name.startswith("pwned")]


@pytest.mark.parametrize("command", [*commands(TRICKS), *LONG_TRICKS])
def test_no_trick_runs_what_no_rule_names(workspace: Path, command: str) -> None:
    ran(workspace, command)
    assert not marks(workspace)


@pytest.mark.parametrize("command", ["./check", "./tools/run", "git status", "ls -la; ./check", "../pwn"])
def test_no_rule_names_what_lies_in_another_folder(workspace: Path, command: str) -> None:
    for folder in ("evil", "./evil", str(workspace / "evil"), "tools/../evil"):
        ran(workspace, command, folder)
    assert not marks(workspace)


@pytest.mark.parametrize("command", NAMED)
def test_what_a_rule_names_runs(workspace: Path, command: str) -> None:
    assert ran(workspace, command) is not None
    assert not marks(workspace)


WIDE = tuple(
    f"Bash({name} *)"
    for name in "git sed awk gawk rg fd find sort uniq tar xxd less man make npm pnpm yarn go cargo curl wget ssh scp "
    "rsync zip test [ printf echo cat read unset export let declare hash jobs fc cd ls head env xargs timeout tree "
    "diff file ruff pytest mypy jq split csplit shuf gcc cmake ctags cpio wait getopts shopt history command openssl "
    "date sudo nice flock eslint jest "
    "vim view ex ed emacs nano dc gdb sqlite3 psql mysql hg svn pandoc latexmk pdflatex "
    "socat nc tshark nmap apt-get patch capsh npx uvx linux64 setarch ld.so".split()
)


@pytest.mark.parametrize("command", commands(ARGUMENTS))
def test_a_star_covers_no_argument_that_starts_a_program_or_names_a_file_to_write(
    workspace: Path, command: str
) -> None:
    ran(workspace, command, allowed=WIDE)
    assert not marks(workspace)
    assert verdict(workspace, command, WIDE) != "allow"


def named(command: str) -> tuple[str, ...]:
    """A rule with `*` for each program in the command, with what xargs and parallel are told to run."""
    parts = [part.split() for part in re.split(r"[|;&]+", command)]
    return tuple(f"Bash({' '.join(words[:-1] if words[0] in FEEDERS else words[:1])} *)" for words in parts)


FEEDERS = ("xargs", "parallel")


@pytest.mark.parametrize("command", [*commands(WRAPPING), *commands(STARTING)])
def test_a_rule_for_a_program_does_not_cover_what_its_arguments_start(workspace: Path, command: str) -> None:
    ran(workspace, command, allowed=named(command))
    assert not marks(workspace)
    assert verdict(workspace, command, named(command)) != "allow"


@pytest.mark.parametrize("command", commands(FED))
def test_a_rule_for_a_program_does_not_cover_what_it_reads_from_a_pipe(workspace: Path, command: str) -> None:
    """The first words of the program that reads are in the rule, so that only its input is not."""
    before, _, last = command.rpartition("|")
    rules = (*named(before), *(f"Bash({' '.join(last.split()[:size])} *)" for size in range(1, 5)))
    ran(workspace, command, allowed=rules)
    assert not marks(workspace)
    assert verdict(workspace, command, rules) != "allow"


@pytest.mark.parametrize("command", commands(USUAL))
def test_a_rule_for_a_program_covers_its_usual_arguments(workspace: Path, command: str) -> None:
    assert "allow" == verdict(workspace, command, named(command))


@pytest.mark.parametrize(
    ("command", "folder", "covered"),
    [
        ("git status", None, True),
        ("git status", ".", True),
        ("git status", "tools", True),
        ("cd . && git status", None, True),
        ("cd tools && git log -1", None, True),
        ("git status", "nested", False),
        ("git status", "nested/sub", False),
        ("cd nested && git status", None, False),
        ("cd nested; cd sub; git log -1", None, False),
        ("cd -- nested && git status", None, False),
        ("cd tools/../nested && git status", None, False),
        ("cd link && git status", None, False),
        ("cd .. && git status", None, False),
        ("cd - && git status", None, False),
        ("cd && git status", None, False),
        ("pushd nested && git status", None, False),
        ("cd nested && ls -la", None, True),
    ],
)
def test_no_rule_names_git_in_another_repository(
    workspace: Path, command: str, folder: str | None, covered: bool
) -> None:
    """Whose settings name programs that any command of git runs."""
    (workspace / "nested/sub").mkdir(parents=True)
    (workspace / "link").symlink_to("nested")
    subprocess.run(["git", "init", "-q", "--template="], cwd=workspace / "nested", check=True)
    config = ["git", "config", "core.fsmonitor", str(workspace / "pwn")]
    subprocess.run(config, cwd=workspace / "nested", check=True)
    rules = ("Bash(cd *)", "Bash(pushd *)", "Bash(git *)", "Bash(ls *)")
    ran(workspace, command, folder, rules)
    assert not marks(workspace)
    assert covered == (verdict(workspace, command, rules, folder) == "allow")


@pytest.mark.parametrize("command", commands(ORDINARY))
def test_a_star_covers_ordinary_arguments(workspace: Path, command: str) -> None:
    assert "allow" == verdict(workspace, command, WIDE)


# What a rule spells, it covers, and not once more than it spells it.
SPELLED = [
    ("find . -exec grep *", "find . -exec grep x a.txt ;", True),
    ("find . -exec grep *", "find . -exec grep x a.txt ; -exec ./pwn ;", False),
    ("find . -exec *", "find . -exec ./pwn ;", False),
    ("git -c color.ui=never *", "git -c color.ui=never log", True),
    ("git -c color.ui=never *", "git -c color.ui=never -c alias.z=!./pwn z", False),
    ("git -C sub *", "git -C sub status", True),
    ("git -C sub *", "git -C sub -C .. status", False),
    ("git *", "git -c color.ui=never log", False),
    ("git config --get *", "git config --get user.name", True),
    ("sort -o out *", "sort -o out a.txt", True),
    ("sort -o out *", "sort -o out a.txt -o pwned", False),
    ("timeout 60 pytest *", "timeout 60 pytest -x", True),
    ("timeout 60 *", "timeout 60 ./pwn", False),
    ("timeout *", "timeout 60 pytest", False),
    ("sudo env X=1 make *", "sudo env X=1 make test", True),
    ("sudo env X=1 make *", "sudo env X=1 make SHELL=./pwn", False),
    ("xargs -n 1 git log", "xargs -n 1 git log", True),
    ("xargs -n 1 git *", "xargs -n 1 git log", False),
    ("xargs -n 1 cat *", "xargs -n 1 cat a.txt", True),
    ("xargs -n 1 git *", "xargs -n 1 git -c alias.z=!./pwn z", False),
    ("make CC=gcc *", "make CC=gcc test", True),
    ("make CC=gcc *", "make CC=./pwn test", False),
    ("uv run pytest *", "uv run pytest -x", True),
    ("uv run *", "uv run ./pwn", False),
    ("uv *", "uv --quiet run --with x ./pwn", False),
    ("uv *", "uv pip list", True),
    ("npx prettier *", "npx prettier --check .", True),
    ("npx *", "npx ./pwn", False),
    ("bundle exec rspec *", "bundle exec rspec spec", True),
    ("bundle exec *", "bundle exec ./pwn", False),
    ("conda run *", "conda run -n x ./pwn", False),
    ("setarch *", "setarch x86_64 ./pwn", False),
    ("gosu *", "gosu root ./pwn", False),
    ("sed -i s/a/b/ *", "sed -i s/a/b/ a.txt", True),
    ("sed -i s/a/b/ *", "sed -i s/a/b/ -e 1e./pwn a.txt", False),
]


@pytest.mark.parametrize(("pattern", "command", "covered"), SPELLED)
def test_a_rule_covers_the_power_that_it_spells(workspace: Path, pattern: str, command: str, covered: bool) -> None:
    quoted = command.replace(" ;", " ';'").replace("alias.z=!./pwn", "'alias.z=!./pwn'")
    assert (verdict(workspace, quoted, (f"Bash({pattern})",)) == "allow") == covered


# The mark is left by tricks that run.
REAL = [
    "git status; ./pwn",
    "echo $(./pwn)",
    "git -c alias.z='!./pwn' z",
    "find . -name a.txt -exec ./pwn {} +",
    LONG_TRICKS[0],
    "printf -v PATH evil:/usr/bin:/bin; git status",
    r"printf -v a '%b' 'b[\x24(./pwn)]'; test -v 'x[a]'",
    "git -c color.ui=never -c alias.z='!./pwn' z",
    "git grep -nO./pwn alpha",
    "git log --output=pwned",
    "git fetch --upload-p=./pwn .",
    "sed -n 1e./pwn a.txt",
    "awk 'BEGIN { system(\"./pwn\") }'",
    "tar cIf ./pwn x.tar a.txt",
    "sort -nro $HOME/pwned a.txt",
    "uniq a.txt $HOME/pwned",
    "split --filter=./pwn a.txt",
    "env --split=./pwn",
    "echo './pwn' | setarch x86_64",
    "echo '-c alias.z=!./pwn z' | xargs git",
    "ldd ./pwn; ssh-agent ./pwn",
    "git -c core.fsmonitor=./pwn status",
]


@pytest.mark.parametrize("command", REAL)
def test_the_tricks_work_where_everything_is_allowed(workspace: Path, command: str) -> None:
    in_the_open(workspace, command)
    assert marks(workspace)
