"""Every attack is run for real in every sandbox that works here, and gets at nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from dovetail.agent.environment import program_outside, without_keys
from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.sandbox import Bubblewrap, Landlock, NoSandbox, Sandbox, SandboxError, open_sandbox
from dovetail.agent.sandbox.landlock import landlock_problem
from dovetail.agent.settings import ContextSettings, PermissionSettings, Settings
from dovetail.errors import LimitError
from tests.agent.security.attacks import ATTRIBUTES, KEYS, NETWORK, READS, WRITES, commands

SECRET = "SECRET-7f3a91"
KEY = "sk-SECRET-KEY-5b1c"
DENY = ("Read(.env)", "Read(secrets/**)", "Read(**/*.pem)", "Edit(locked.toml)", "Bash(nl *)")
KINDS: dict[str, Callable[[Rules, bool], Bubblewrap | Landlock]] = {
    "bubblewrap": Bubblewrap,
    "landlock": Landlock,
    "landlock without mounts": partial(Landlock, mounts=False),
}
LIMIT_S = 60


@dataclass
class World:
    """A workspace with secrets in it, a home with others, and a folder that is nobody's business."""

    base: Path
    environment: dict[str, str]
    sandbox: Sandbox

    @property
    def workspace(self) -> Path:
        return self.base / "work"

    def run(self, command: str) -> str:
        """What the command says in the sandbox."""
        with self.sandbox.confined(["/bin/bash", "-c", command], self.workspace) as launch:
            done = subprocess.run(
                launch.words,
                pass_fds=launch.descriptors,
                env={**without_keys(self.environment), **launch.variables},
                cwd=self.workspace,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
            )
        return done.stdout.decode("utf-8", "replace")

    def kept(self) -> dict[str, object]:
        """Everything that must stay as it is, with what tells whether it did."""
        inside = [self.workspace / name for name in (".git/hooks", ".git/config", ".git/commondir", ".dovetail")]
        inside += [self.workspace / name for name in (".git/config.worktree", "locked.toml")]
        roots = [self.base / "home", self.base / "out", *inside]
        paths = [path for root in roots for path in (root, *sorted(root.rglob("*")))]
        return {str(path): _state(path) for path in paths if os.path.lexists(path)}


def _state(path: Path) -> object:
    status = path.lstat()
    if path.is_symlink():
        return os.readlink(path)
    if not path.is_file():
        return status.st_mode, status.st_uid
    return status.st_mode, status.st_uid, status.st_mtime_ns, status.st_nlink, path.read_bytes()


def _template(base: Path) -> None:
    work, home = base / "work", base / "home"
    files = {
        work / ".env": f"TOKEN={SECRET}\n",
        work / "secrets/deep/key": SECRET,
        work / "certs/server.pem": SECRET,
        work / "a.txt": "alpha\n",
        work / "locked.toml": "locked\n",
        work / "sub/b.txt": "beta\n",
        base / "out/file": "untouched\n",
        home / ".ssh/id_ed25519": SECRET,
        home / ".aws/credentials": SECRET,
        home / ".netrc": SECRET,
        home / ".config/gh/hosts.yml": SECRET,
        home / ".dovetail/settings.json": f'{{"model": {{"name": "{SECRET}"}}}}',
        home / ".bashrc": "# mine\n",
        home / ".profile": "# mine\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (base / "out/empty").mkdir()
    (work / "link").symlink_to(".env")
    (work / ".git/hooks").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--template=", str(work)], check=True, env={**os.environ, "HOME": str(home)})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("template")
    _template(base)
    return base


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[socket.socket, socket.socket, str]]:
    """Somebody who listens on TCP and UDP at one port, and one with an abstract name."""
    name = f"dovetail-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(tcp.getsockname())
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{name}")
            abstract.listen()
            for each in (tcp, udp):
                each.setblocking(False)
            yield tcp, udp, name


def _works(kind: str) -> bool:
    return shutil.which("bwrap") is not None if kind == "bubblewrap" else not landlock_problem()


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    template: Path,
    listener: tuple[socket.socket, socket.socket, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A fresh world in a sandbox that was seen to hold: no attack runs where it could do harm."""
    base = tmp_path / "world"
    shutil.copytree(template, base, symlinks=True)
    os.link(base / "work/.env", base / "work/hard")
    home = base / "home"
    monkeypatch.setenv("DOVETAIL_HOME", str(home / ".dovetail"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OUT": str(base / "out"),
        "RUN_PID": str(os.getpid()),
        "PORT": str(listener[0].getsockname()[1]),
        "NAME": listener[2],
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY,
        "GEMINI_API_KEY": KEY,
        "COPY_OF_KEY": KEY,
    }
    settings = Settings(permissions=PermissionSettings(deny=DENY))
    rules = Rules.of(settings, ToolFlags(approval_mode="yolo"), base / "work", home=home)
    sandbox = KINDS[request.param](rules, False)
    made = World(base, environment, sandbox)
    made.run("true")  # what the sandbox makes itself is there from now on
    answer = made.run('touch "$OUT/canary" && echo HOLE; echo alive; mkdir -p sub/inside && echo inside')
    assert "alive" in answer
    assert "inside" in answer
    assert "HOLE" not in answer
    assert not (base / "out/canary").exists()
    yield made
    sandbox.close()
    assert (base / "work/.git/config").is_file()


WITH_MOUNTS = pytest.mark.parametrize(
    "world", [kind for kind in KINDS if _works(kind) and "without" not in kind], indirect=True
)
EVERYWHERE = pytest.mark.parametrize("world", [kind for kind in KINDS if _works(kind)], indirect=True)


def test_some_sandbox_works_on_this_machine() -> None:
    assert [kind for kind in KINDS if _works(kind)]


@EVERYWHERE
@pytest.mark.parametrize("command", commands(READS))
def test_no_command_reads_what_rules_forbid(world: World, command: str) -> None:
    assert SECRET not in world.run(command)
    if not any(word in command for word in ("mv ", "cp ", "ln ", "install", "git ", "shutil")):
        return
    # What was moved or copied is as well hidden from the next command.
    assert SECRET not in world.run("cat x other/* other/*/* sub/.env 2>/dev/null; grep -rs SECRET-7 . ~")


@EVERYWHERE
@pytest.mark.parametrize("command", commands(WRITES))
def test_no_command_writes_outside_or_what_is_protected(world: World, command: str) -> None:
    before = world.kept()
    answer = world.run(command)
    assert before == world.kept()
    assert "ESCAPED" not in answer


@WITH_MOUNTS
@pytest.mark.parametrize("command", commands(ATTRIBUTES))
def test_no_command_changes_times_and_rights_outside(world: World, command: str) -> None:
    before = world.kept()
    world.run(command)
    assert before == world.kept()


@EVERYWHERE
@pytest.mark.parametrize("command", commands(KEYS))
def test_no_command_sees_a_key(world: World, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    answer = world.run(command)
    assert KEY not in answer
    assert "ESCAPED" not in answer


@EVERYWHERE
@pytest.mark.parametrize("command", commands(NETWORK))
def test_no_command_reaches_anybody(
    world: World, listener: tuple[socket.socket, socket.socket, str], command: str
) -> None:
    assert "ESCAPED" not in world.run(command)
    tcp, udp, _ = listener
    with pytest.raises(BlockingIOError):
        tcp.accept()
    with pytest.raises(BlockingIOError):
        udp.recv(9)


def test_there_are_enough_attacks() -> None:
    assert 150 <= sum(len(commands(text)) for text in (READS, WRITES, ATTRIBUTES, KEYS, NETWORK))


# The checks above can fail: without a sandbox these get through. They touch nothing but the world of the test.
HARMLESS = [
    ("cat .e*v", SECRET),
    ("cd sub && cat ../.env", SECRET),
    ("cat hard", SECRET),
    ("mv secrets other && cat other/deep/key", SECRET),
    ("tar cf - ~/.aws | strings", SECRET),
    ('exec 3<> "/dev/tcp/127.0.0.1/$PORT" && echo ESC""APED', "ESCAPED"),
    ('kill -0 "$RUN_PID" && echo ESC""APED', "ESCAPED"),
    ('echo x > "$OUT/file"', None),
    ("echo x > .git/hooks/pre-commit", None),
    ("echo x > .git/commondir", None),
    ("mkdir -p .dovetail && echo x > .dovetail/settings.json", None),
]


@pytest.mark.parametrize("world", [next(kind for kind in KINDS if _works(kind))], indirect=True)
@pytest.mark.parametrize(("command", "said"), HARMLESS)
def test_without_a_sandbox_the_same_commands_get_through(
    world: World, listener: tuple[socket.socket, socket.socket, str], command: str, said: str | None
) -> None:
    before = world.kept()
    open_world = World(world.base, world.environment, NoSandbox())
    answer = open_world.run(command)
    if said is None:
        assert before != world.kept()
    else:
        assert said in answer
    if "tcp" in command:
        listener[0].accept()[0].close()


# What people do in a workspace works: each of these says "done".
WORK = [
    "echo x > sub/new && cat sub/new && echo done",
    "mkdir -p sub/a/b && mv sub/b.txt sub/a/b/ && rm sub/a/b/b.txt && echo done",
    "sed -i s/beta/gamma/ sub/b.txt && grep -q gamma sub/b.txt && echo done",
    'echo x > "$TMPDIR/x" && cat "$TMPDIR/x" && echo done',
    "python3 -c 'import tempfile; tempfile.TemporaryFile().write(b\"x\")' && echo done",
    "python3 -m compileall -q sub && echo done",
    "echo a | grep a | wc -l && echo done",
    "(exit 3); [ $? = 3 ] && echo done",
    "git status -s > /dev/null && echo done",
    "ls / /usr/bin > /dev/null && echo done",
    "id && date && echo done",
    "head -c 9 /dev/urandom > /dev/null && echo done",
]
TOP = [
    "echo x > new.txt && cat new.txt && echo done",
    "mv a.txt c.txt && echo done",
    "git add a.txt && git -c user.name=x -c user.email=x@y commit -qm x && git log --oneline && echo done",
    "git checkout -qb topic && git branch && echo done",
    "chmod +x a.txt && echo done",
]


@EVERYWHERE
@pytest.mark.parametrize("command", WORK)
def test_ordinary_work_goes_on(world: World, command: str) -> None:
    assert world.run(command).endswith("done\n")


@WITH_MOUNTS
@pytest.mark.parametrize("command", TOP)
def test_work_at_the_top_of_the_workspace_goes_on(world: World, command: str) -> None:
    assert world.run(command).endswith("done\n")


@EVERYWHERE
def test_files_of_one_command_are_there_for_the_next(world: World) -> None:
    world.run('echo one > sub/kept; echo two > "$TMPDIR/kept"')
    assert "one\ntwo\n" == world.run('cat sub/kept "$TMPDIR/kept"')


@EVERYWHERE
def test_a_program_that_a_rule_forbids_cannot_be_run(world: World) -> None:
    for command in ("nl a.txt", "n''l a.txt", "$(echo nl) a.txt", "env nl a.txt", "$(command -v nl) a.txt"):
        assert "alpha" not in world.run(command)


VARIABLES = [
    ("OPENAI_API_KEY", "short", False),
    ("GROQ_API_KEY", KEY, False),
    ("OPENAI_API_KEY_2", KEY, False),
    ("OPENAI_API_KEY_PROD", KEY, False),
    ("MY_APIKEY", KEY, False),
    ("ANTHROPIC_AUTH_TOKEN", KEY, False),
    ("HF_TOKEN", KEY, False),
    ("OPENAI_KEY", KEY, False),
    ("AZURE_OPENAI_KEY", KEY, False),
    ("CLAUDE_CODE_OAUTH_TOKEN", KEY, False),
    ("LITELLM_MASTER_KEY", KEY, False),
    ("MISTRAL_SECRET", "short", False),
    ("HEADERS", f"Authorization: Bearer {KEY}", False),
    ("CONFIG", f'{{"key": "{KEY}"}}', False),
    ("MINE", "sk-ant-api03-" + "x" * 40, False),
    ("OTHER", "AIza" + "x" * 35, False),
    ("URL", "https://h/?t=hf_" + "x" * 34, False),
    ("PATH", "/usr/bin:/bin", True),
    ("OPENAI_API_KEY_FILE", "/run/key", True),
    ("OPENAI_BASE_URL", "http://localhost", True),
    ("OPENAI_KEY_FILE", "/run/key", True),
    ("GEMINI_TOKENS", "4000", True),
    ("GH_TOKEN", "ghp_1", True),
    ("KEYBOARD", "us", True),
    ("TASK", "task-sk-x", True),
    ("SHORTER", "what is short is a word", True),
]


@pytest.mark.parametrize(("name", "value", "stays"), VARIABLES)
def test_variables_that_hold_keys_are_left_out(name: str, value: str, stays: bool) -> None:
    environment = {"DEEPSEEK_API_KEY": KEY, "X_API_KEY": "short", name: value}
    assert stays == (name in without_keys(environment))
    assert name in without_keys(environment, keep=[name])


def rules_of(workspace: Path, home: Path, **lists: tuple[str, ...]) -> Rules:
    settings = Settings(permissions=PermissionSettings(**lists))
    return Rules.of(settings, ToolFlags(approval_mode="yolo"), workspace, home=home)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
@pytest.mark.parametrize("denied", ["conf/deep/key", "conf/deep", "conf/*/k*"])
def test_what_is_hidden_cannot_be_taken_where_no_rule_finds_it(tmp_path: Path, kind: str, denied: str) -> None:
    work = tmp_path / "work"
    (work / "conf/deep").mkdir(parents=True)
    (work / "conf/deep/key").write_text(SECRET)
    sandbox = KINDS[kind](rules_of(work, tmp_path, deny=(f"Read({denied})",)), False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    for command in (
        "mv conf new",
        "mv conf/deep conf/new",
        "mv conf/deep/key new",
        "cp -rl conf new",
        "ln -s conf new",
    ):
        world.run(command)
        assert SECRET not in world.run("cat new new/key new/deep/key conf/new/key; grep -r SECRET-7 .")
    sandbox.close()
    assert SECRET == (work / "conf/deep/key").read_text()


OBEYED = [
    ("core.hooksPath", ".githooks", ".githooks/pre-commit"),
    ("core.hooksPath", "tools/hooks", "tools/hooks/pre-commit"),
    ("core.hooksPath", ".husky/_", ".husky/pre-commit"),
    ("include.path", "../.gitconfig", ".gitconfig"),
    ("includeIf.gitdir:/.path", "../sub/more", "sub/more"),
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
@pytest.mark.parametrize(("key", "value", "file"), OBEYED)
def test_what_the_settings_of_git_name_is_not_written(
    tmp_path: Path, kind: str, key: str, value: str, file: str
) -> None:
    work = tmp_path / "work"
    (work / file).parent.mkdir(parents=True)
    (work / "tools/x").mkdir(parents=True, exist_ok=True)
    (work / file).write_text("# mine\n")
    if value.endswith("_"):
        (work / value).mkdir()
    subprocess.run(["git", "init", "-q", "--template=", str(work)], check=True)
    (work / ".git/hooks").mkdir()
    subprocess.run(["git", "-C", str(work), "config", key, value], check=True)
    rules = rules_of(work, tmp_path)
    assert "deny" == rules.decide("write_file", {"file_path": file}, False).verdict
    assert "allow" == rules.decide("write_file", {"file_path": "tools/x/y"}, False).verdict
    sandbox = KINDS[kind](rules, False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    folder = file.partition("/")[0]
    for command in (
        f"echo x > {file}",
        f"rm {file}; echo x > {file}",
        f"mv {folder} z; cp -r z {folder}; echo x > {file}",
    ):
        world.run(command)
        assert "# mine\n" == (work / file).read_text()
    assert "done" in world.run("echo x > tools/x/y && echo done")
    sandbox.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_a_folder_beside_the_workspace_is_protected_like_it(tmp_path: Path, kind: str) -> None:
    work, beside, plain = tmp_path / "work", tmp_path / "beside", tmp_path / "plain"
    for folder in (work, beside / "sub", plain / "sub"):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--template=", str(beside)], check=True)
    (beside / ".git/hooks").mkdir()
    settings = Settings(context=ContextSettings(include_directories=(str(beside), str(plain))))
    rules = Rules.of(settings, ToolFlags(approval_mode="yolo"), work, home=tmp_path)
    sandbox = KINDS[kind](rules, False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    before = (beside / ".git/config").read_text()
    for command in (
        "echo x > ../beside/.git/hooks/pre-commit",
        "git -C ../beside config core.pager x",
        "mkdir -p ../beside/.dovetail && echo {} > ../beside/.dovetail/settings.json",
        "echo x > ../beside/.git/commondir",
        "mkdir -p ../plain/.git/hooks && echo x > ../plain/.git/hooks/pre-commit",
        "echo {} > ../plain/.dovetail/settings.json",
    ):
        world.run(command)
    assert "done" in world.run("echo x > ../beside/sub/y && echo x > ../plain/sub/y && echo done")
    sandbox.close()
    assert before == (beside / ".git/config").read_text()
    assert not list((beside / ".git/hooks").iterdir())
    assert not (beside / ".git/commondir").exists()
    assert [plain / "sub"] == list(plain.iterdir())
    assert not (beside / ".dovetail").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_where_there_is_no_repository_none_can_be_made(tmp_path: Path, kind: str) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    sandbox = KINDS[kind](rules_of(work, tmp_path), False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    for command in ("mkdir -p .git/hooks && echo x > .git/hooks/pre-commit", "git init -q .", "mv sub .git"):
        world.run(command)
        assert not list((work / ".git").iterdir())
    sandbox.close()
    assert ["sub"] == sorted(path.name for path in work.iterdir())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_the_file_that_leads_to_a_repository_cannot_be_replaced(tmp_path: Path, kind: str) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / ".git").write_text("gitdir: /elsewhere\n")
    sandbox = KINDS[kind](rules_of(work, tmp_path), False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    for command in ("echo x > .git", "rm -f .git; echo x > .git", "mv .git y", "echo x > z; mv -f z .git"):
        world.run(command)
        assert "gitdir: /elsewhere\n" == (work / ".git").read_text()
    sandbox.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind) and "without" not in kind])
def test_an_allow_rule_opens_what_is_hidden_by_itself(tmp_path: Path, kind: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / ".npmrc").write_text(SECRET)
    for allow, seen in (((), False), (("Read(~/.npmrc)",), True)):
        sandbox = KINDS[kind](rules_of(work, tmp_path, allow=allow), False)
        world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
        assert seen == (SECRET in world.run("cat ~/.npmrc"))
        sandbox.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_the_network_can_be_let_in(
    tmp_path: Path, listener: tuple[socket.socket, socket.socket, str], kind: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    sandbox = KINDS[kind](rules_of(work, tmp_path), True)
    environment = {"PATH": os.environ["PATH"], "PORT": str(listener[0].getsockname()[1])}
    world = World(tmp_path, environment, sandbox)
    assert "open" in world.run('exec 3<> "/dev/tcp/127.0.0.1/$PORT" && echo open')
    listener[0].accept()[0].close()
    sandbox.close()


def test_a_sandbox_that_is_required_and_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.agent.sandbox._problem", lambda *_: "it is broken")
    rules = rules_of(tmp_path, tmp_path)
    for choice in ("required", "bubblewrap", "landlock"):
        with pytest.raises(SandboxError, match="it is broken"):
            open_sandbox(choice, rules)  # type: ignore[arg-type] # each of them is one
    sandbox, problem = open_sandbox("auto", rules)
    assert "none" == sandbox.name
    assert "bubblewrap: it is broken; landlock: it is broken" in problem
    assert ("none", "") == (open_sandbox("off", rules)[0].name, open_sandbox("off", rules)[1])


def test_landlock_takes_over_where_bubblewrap_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = landlock_problem()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    sandbox, problem = open_sandbox("auto", rules_of(tmp_path, tmp_path))
    assert ("none" if missing else "landlock") == sandbox.name
    assert missing in problem
    assert bool(missing) == bool(problem)
    sandbox.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_a_repository_cannot_make_the_sandbox_look_broken(tmp_path: Path, kind: str) -> None:
    """Where its settings cannot be protected, commands are refused; they do not run without a sandbox instead."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / ".dovetail").symlink_to("sub")
    choice = "bubblewrap" if kind == "bubblewrap" else "landlock"
    sandbox, _ = open_sandbox(choice, rules_of(work, tmp_path))
    assert choice == sandbox.name
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    with pytest.raises(LimitError, match="symbolic link"):
        world.run("rm .dovetail; mkdir .dovetail; echo {} > .dovetail/settings.json")
    sandbox.close()


def test_programs_of_the_run_are_not_looked_for_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    for name in ("bwrap", "rg", "python3", "true"):
        (work / "bin" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
        (work / "bin" / name).chmod(0o755)
    (tmp_path / "links").symlink_to(work / "bin")
    monkeypatch.setenv("PATH", f"{work}/bin:{tmp_path}/links:bin:{os.environ['PATH']}")
    assert str(tmp_path) not in program_outside("rg", [work])
    sandbox, _ = open_sandbox("auto", rules_of(work, tmp_path))
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    assert "done" in world.run("echo done")
    sandbox.close()
    assert not (tmp_path / "pwned").exists()


def test_a_run_without_a_shell_needs_no_sandbox(tmp_path: Path) -> None:
    rules = Rules.of(Settings(), ToolFlags(approval_mode="default"), tmp_path)
    assert ("none", "") == (open_sandbox("auto", rules)[0].name, open_sandbox("auto", rules)[1])
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if _works(kind)])
def test_a_folder_of_a_repository_is_still_in_it(tmp_path: Path, kind: str) -> None:
    subprocess.run(["git", "init", "-q", "--template=", str(tmp_path)], check=True)
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("alpha")
    rules = rules_of(work, tmp_path)
    sandbox = KINDS[kind](rules, False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    assert "a.txt" in world.run("git -c safe.directory='*' status --short .") + world.run("git ls-files -o")
    sandbox.close()
