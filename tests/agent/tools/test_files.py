"""Tools that read, write and edit files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.permissions import Rule, Rules
from dovetail.agent.tools.files import MAX_LINE, _change, _read_lines
from dovetail.agent.tools.text import open_regular, write_whole
from dovetail.agent.types import ToolError, ToolLimits
from tests.agent.tools.conftest import Call, context_in


def test_a_file_is_read_as_it_stands(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("eins\r\nzwei ü 日本 😀\n\nlast".encode())
    assert "eins\r\nzwei ü 日本 😀\n\nlast" == call("read_file", file_path="a.txt").content
    assert "eins\r\nzwei ü 日本 😀\n\nlast" == call("read_file", file_path=str(tmp_path / "a.txt")).content


def test_an_empty_file_reads_as_nothing(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert "" == call("read_file", file_path="a").content


RANGES = [
    # offset, limit, first line of the answer, lines of the file in it
    (0, 2, "[lines 1-2 of 5;", ["l0", "l1"]),
    (3, 9, "[lines 4-5 of 5;", ["l3", "l4"]),
    (5, 1, "[no lines from offset 5 on; the file has 5 lines]", []),
]


@pytest.mark.parametrize(("offset", "limit", "note", "lines"), RANGES)
def test_a_part_of_a_file_says_which_part_it_is(
    call: Call, tmp_path: Path, offset: int, limit: int, note: str, lines: list[str]
) -> None:
    (tmp_path / "a").write_text("l0\nl1\nl2\nl3\nl4\n")
    first, *rest = call("read_file", file_path="a", offset=offset, limit=limit).content.splitlines()
    assert first.startswith(note)
    assert lines == rest


@given(
    data=st.binary(max_size=400).map(lambda b: b.replace(b"\0", b"\n")),
    first=st.integers(0, 8),
    count=st.integers(1, 8),
)
def test_the_lines_read_are_the_lines_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, first: int, count: int
) -> None:
    data = data.removeprefix(b"\xef\xbb\xbf").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(data)
    lines = data.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    content = _read_lines(path, first, count, 1 << 20).content
    expected = b"".join(lines[first : first + count]).decode("utf-8", "replace")
    body = content if count + first >= len(lines) and not first else content.partition("]\n")[2]
    assert expected == (body if lines else content)


def test_long_lines_and_huge_files_are_cut_with_a_word_about_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "wide").write_text("ü" * 10_000 + "\nnext\n")
    content = call("read_file", file_path="wide").content
    assert "1 long lines are cut" in content
    assert "\n" + "ü" * MAX_LINE + "... [line cut]\nnext\n" in content
    (tmp_path / "endless").write_bytes(b"x" * (3 << 20))
    assert len(call("read_file", file_path="endless").content) < 3 * MAX_LINE
    (tmp_path / "long").write_text("line\n" * 300_000)
    assert "[lines 1-2000 of 300000;" in call("read_file", file_path="long").content
    context = context_in(tmp_path, limits=ToolLimits(max_output_bytes=100))
    assert "[lines 1-20 of 300000;" in call("read_file", context, file_path="long").content


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_encodings_are_understood_and_kept(call: Call, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a").write_bytes("grüße\r\nzwei\r\n".encode(encoding))
    assert "grüße\r\nzwei\r\n" == call("read_file", file_path="a").content
    call("edit", file_path="a", old_string="grüße\nzwei", new_string="hallo\ndu")
    assert "hallo\r\ndu\r\n".encode(encoding) == (tmp_path / "a").read_bytes()
    call("write_file", file_path="a", content="neu\n")
    assert "neu\r\n".encode(encoding) == (tmp_path / "a").read_bytes()


def test_a_binary_file_is_described_not_shown(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    assert (
        "a.bin is a binary file of 7 bytes; its content is not shown." == call("read_file", file_path="a.bin").content
    )
    with pytest.raises(ToolError, match="binary"):
        call("edit", file_path="a.bin", old_string="ELF", new_string="X")


def test_bytes_that_are_no_text_survive_an_edit(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9 one\n")
    assert "caf� one\n" == call("read_file", file_path="a").content
    call("edit", file_path="a", old_string="one", new_string="zwei ü")
    assert b"caf\xe9 zwei \xc3\xbc\n" == (tmp_path / "a").read_bytes()


def test_what_is_no_regular_file_is_refused_without_waiting(call: Call, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ToolError, match="not a regular file"):
            call("read_file", file_path=name)
    with pytest.raises(ToolError, match="No such file"):
        call("read_file", file_path="absent")


def test_a_file_is_written_with_its_folders(call: Call, tmp_path: Path) -> None:
    assert "Created d/e/a.txt." == call("write_file", file_path="d/e/a.txt", content="x\n").content
    assert "x\n" == (tmp_path / "d/e/a.txt").read_text()
    assert "Overwrote d/e/a.txt." == call("write_file", file_path="d/e/a.txt", content="y\n").content
    assert ["a.txt"] == [path.name for path in (tmp_path / "d/e").iterdir()]


def test_a_file_keeps_its_permissions_and_line_ends(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"a\r\nb\r\n")
    path.chmod(0o755)
    assert "with its Windows line ends" in call("write_file", file_path="run.sh", content="c\nd\n").content
    assert b"c\r\nd\r\n" == path.read_bytes()
    assert 0o755 == path.stat().st_mode & 0o777


def test_a_folder_is_not_overwritten(call: Call, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(ToolError):
        call("write_file", file_path="d", content="x")


EDITS = [
    # before, old, new, all, after or words of the error
    ("a b a", "b", "c", False, "a c a"),
    ("a b a", "a", "c", True, "c b c"),
    ("a b a", "a", "c", False, "occurs 2 times"),
    ("a b a", "x", "c", False, "does not occur"),
    ("a b a", "a", "a", False, "the same"),
    ("a\r\nb\r\n", "a\nb", "x\ny", False, "x\r\ny\r\n"),
    ("a\r\nb\r\n", "a", "x\ny", False, "x\r\ny\r\nb\r\n"),
    ("a\r\nb\r\n", "a\r\nb", "x\r\ny", False, "x\r\ny\r\n"),
    ("a\nb\r\nc\n", "a\n", "x\n", False, "x\nb\r\nc\n"),
    ("a\nb\r\nc\n", "b\n", "x\n", False, "a\nx\r\nc\n"),
    ("日本", "本", "😀", False, "日😀"),
    (r"a\1", "a", r"\g<0>", False, r"\g<0>\1"),
]


@pytest.mark.parametrize(("before", "old", "new", "every", "after"), EDITS)
def test_an_edit_changes_what_it_names_and_nothing_else(
    call: Call, tmp_path: Path, before: str, old: str, new: str, every: bool, after: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(before.encode())
    try:
        call("edit", file_path="a", old_string=old, new_string=new, replace_all=every)
    except ToolError as error:
        assert after in str(error)
        assert before.encode() == path.read_bytes()
    else:
        assert after.encode() == path.read_bytes()


@given(st.text("ab\r\n", max_size=30), st.text("ab\n", min_size=1, max_size=5), st.text("cd\n", max_size=5))
def test_bytes_outside_the_edited_place_never_change(
    tmp_path_factory: pytest.TempPathFactory, before: str, old: str, new: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "edited"
    path.write_bytes(before.encode())
    try:
        _change(path, old, new, False, "edited")
    except ToolError:
        assert before.encode() == path.read_bytes()
    else:
        after = path.read_bytes().decode()
        ends = [(old, new), (old.replace("\n", "\r\n"), new.replace("\n", "\r\n")), (old, new.replace("\n", "\r\n"))]
        assert after in [before.replace(a, b) for a, b in ends]


def test_an_empty_old_string_makes_a_new_file_only(call: Call, tmp_path: Path) -> None:
    assert "Created new." == call("edit", file_path="new", old_string="", new_string="x").content
    with pytest.raises(ToolError, match="exists"):
        call("edit", file_path="new", old_string="", new_string="y")
    with pytest.raises(ToolError, match="no file"):
        call("edit", file_path="absent", old_string="a", new_string="y")


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "link/a", "link", "d/../../out", "round"])
def test_no_path_leads_out_of_the_workspace(call: Call, tmp_path: Path, name: str) -> None:
    inside = tmp_path / "in"
    (inside / "d").mkdir(parents=True)
    (tmp_path / "out").write_text("secret")
    (inside / "link").symlink_to(tmp_path)
    (inside / "round").symlink_to("round")
    for tool, more in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit", {"old_string": "secret", "new_string": "x"}),
    ):
        with pytest.raises(ToolError, match=r"outside the workspace|leads nowhere"):
            call(tool, context_in(inside), file_path=name, **more)
    assert "secret" == (tmp_path / "out").read_text()


def test_a_link_inside_the_workspace_is_followed_and_stays_a_link(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "link").symlink_to("a")
    call("edit", file_path="link", old_string="one", new_string="two")
    assert "two" == (tmp_path / "a").read_text()
    assert (tmp_path / "link").is_symlink()


def test_an_allow_rule_opens_a_folder_outside(call: Call, tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "out").write_text("open")
    rules = Rules(workspace=inside.resolve(), mode="yolo", allow=(Rule.parse(f"Read(/{tmp_path.resolve()}/out)"),))
    context = context_in(inside, permissions=rules)
    assert "open" == call("read_file", context, file_path="../out").content
    with pytest.raises(ToolError, match="outside"):
        call("write_file", context, file_path="../out", content="x")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_no_file_can_have_are_refused(call: Call, name: str) -> None:
    with pytest.raises(ToolError, match="empty or holds a zero byte"):
        call("read_file", file_path=name)


@pytest.mark.parametrize("name", ["sub", "a/sub"])
def test_a_folder_that_became_a_link_after_it_was_permitted_is_not_followed(tmp_path: Path, name: str) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "work" / name
    outside.mkdir()
    (outside / "file").write_text("secret")
    inside.parent.mkdir(parents=True)
    inside.symlink_to(outside)
    with pytest.raises(ToolError, match="file cannot be read"):
        open_regular(inside / "file")
    for target in ("file", "new", "new/deep"):
        with pytest.raises(ToolError, match="cannot be written"):
            write_whole(inside / target, b"mine")
    assert {"file": "secret"} == {path.name: path.read_text() for path in outside.iterdir()}


def test_a_file_that_became_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "link").symlink_to("outside")
    with pytest.raises(ToolError, match="no regular file"):
        write_whole(tmp_path / "link", b"mine")
    assert "secret" == (tmp_path / "outside").read_text()
