"""read_file, write_file, edit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.agent.protocols import ToolContext
from dovetail.agent.tools.base import Builtin, flag, parameters, permitted, shown, text, whole
from dovetail.agent.tools.text import (
    MAX_EDITED_BYTES,
    Encoding,
    clean,
    newline_of,
    open_regular,
    read_whole,
    sniff,
    write_whole,
)
from dovetail.agent.types import ToolError, ToolOutput

DEFAULT_LINES = 2000
MAX_LINE = 2000
# A file that is longer than this is read no further only to tell how many lines it has.
MAX_COUNTED_BYTES = 256 << 20
_CHUNK = 1 << 20
_NOTE = 200


async def _read(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    path = permitted(context, args["file_path"])
    first, count = int(args.get("offset", 0)), int(args.get("limit", DEFAULT_LINES))
    # Lines are counted here, so that the model can ask for those that do not fit.
    most, shown_chars = context.limits.max_output_bytes, context.limits.max_output_chars
    if shown_chars >= 0:  # the last line and the note above them need room, too
        most = min(most, max(shown_chars // 2, shown_chars - MAX_LINE - _NOTE))
    return await asyncio.to_thread(_read_lines, path, first, count, most)


def _read_lines(path: Path, first: int, count: int, max_bytes: int) -> ToolOutput:
    reader = _Lines(first, first + count, max_bytes)
    with open_regular(path) as file:
        encoding = sniff(file.read(8192))
        if encoding is None:
            size = file.seek(0, 2)
            return ToolOutput(f"{path.name} is a binary file of {size} bytes; its content is not shown.")
        file.seek(len(encoding.mark))
        if encoding.name == "utf-8":
            while not reader.full and (chunk := file.read(_CHUNK)):
                reader.feed(chunk)
        else:  # the bytes of a line end can be halves of other characters here
            reader.feed(encoding.decode(file.read(MAX_EDITED_BYTES)).encode("utf-8", "surrogatepass"))
        reader.close()
    shown_text = clean(Encoding().decode(b"".join(reader.taken)))
    return ToolOutput(reader.note(first) + shown_text, display=f"Read {reader.lines} lines of {path.name}")


class _Lines:
    """Takes the lines from `first` to `last` out of chunks of bytes, and counts all of them."""

    def __init__(self, first: int, last: int, max_bytes: int) -> None:
        self._first = first
        self._last = last
        self._left = max_bytes
        self._rest = b""
        self._seen = 0
        self.taken: list[bytes] = []
        self.lines = 0
        self.total = 0
        self.cut = 0

    @property
    def full(self) -> bool:
        """Whether so much was seen that counting on is no use."""
        return self._seen > MAX_COUNTED_BYTES

    def feed(self, chunk: bytes) -> None:
        self._seen += len(chunk)
        if self.total >= self._last:
            self.total += chunk.count(b"\n")
            self._rest = chunk[-1:] if not chunk.endswith(b"\n") else b""
            return
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _CHUNK:  # of a line without end only the head is ever shown
            self._rest = self._rest[: MAX_LINE * 4 + 4]
        for line in lines:
            self._line(line + b"\n")

    def close(self) -> None:
        if self._rest:
            self._line(self._rest)

    def _line(self, line: bytes) -> None:
        if self._first <= self.total < self._last and self._left > 0:
            if len(line) > MAX_LINE * 4 or len(line.decode("utf-8", "replace")) > MAX_LINE + 2:
                head = line[: MAX_LINE * 4].decode("utf-8", "surrogateescape")[:MAX_LINE]
                line = head.encode("utf-8", "surrogateescape") + b"... [line cut]\n"
                self.cut += 1
            self._left -= len(line)
            self.taken.append(line)
            self.lines += 1
        self.total += 1

    def note(self, first: int) -> str:
        """A line that says which part this is, "" for a whole file."""
        if not self.total or (self.lines == self.total and not self.full and not self.cut):
            return ""
        if not self.lines:
            return f"[no lines from offset {first} on; the file has {self.total} lines]\n"
        total = f"more than {self.total}" if self.full else str(self.total)
        cut = f"; {self.cut} long lines are cut" if self.cut else ""
        return f"[lines {first + 1}-{first + self.lines} of {total}; use offset and limit to read others{cut}]\n"


async def _write(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    path = permitted(context, args["file_path"], write=True)
    return await asyncio.to_thread(_replace, path, args["content"], shown(context, path))


def _replace(path: Path, content: str, name: str) -> ToolOutput:
    existed = path.exists()
    encoding = Encoding()
    kept = ""
    if existed:
        try:
            before, encoding = read_whole(path)
        except ToolError:
            if not path.is_file():
                raise
            before = ""  # a binary file is replaced like any other
        if newline_of(before) == "\r\n" and "\r" not in content:
            content, kept = content.replace("\n", "\r\n"), ", with its Windows line ends"
    write_whole(path, encoding.encode(content))
    return ToolOutput(f"{'Overwrote' if existed else 'Created'} {name}{kept}.")


async def _edit(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    path = permitted(context, args["file_path"], write=True)
    if args["old_string"]:  # what is said about it tells whether the file has it
        permitted(context, args["file_path"])
    change = (args["old_string"], args["new_string"], bool(args.get("replace_all", False)))
    return await asyncio.to_thread(_change, path, *change, shown(context, path))


def _change(path: Path, old: str, new: str, every: bool, name: str) -> ToolOutput:
    if not old:
        if path.exists():
            raise ToolError(f"{name} exists: give the text to replace in old_string, or use write_file")
        write_whole(path, Encoding().encode(new))
        return ToolOutput(f"Created {name}.")
    if old == new:
        raise ToolError("old_string and new_string are the same: nothing would change")
    if not path.exists():
        raise ToolError(f"there is no file {name}")
    before, encoding = read_whole(path)
    old, new = _line_ends(before, old, new)
    count = before.count(old)
    if not count:
        raise ToolError(f"old_string does not occur in {name}: read the file and give its text exactly")
    if count > 1 and not every:
        raise ToolError(f"old_string occurs {count} times in {name}: give more context, or set replace_all")
    write_whole(path, encoding.encode(before.replace(old, new)))
    return ToolOutput(f"Changed {name}: {count} {'place' if count == 1 else 'places'}.")


def _line_ends(before: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with the line ends of the file, where the call was written with plain ones."""
    if "\r\n" not in before:
        return old, new
    windows_old, windows_new = (value.replace("\r\n", "\n").replace("\n", "\r\n") for value in (old, new))
    if old in before and "\n" in old:
        return old, new
    if windows_old not in before:
        return old, new
    return windows_old, windows_new if "\n" in old or newline_of(before) == "\r\n" else new


READ_FILE = Builtin(
    "read_file",
    f"Reads a text file. Without offset and limit it returns the first {DEFAULT_LINES} lines.",
    parameters(
        "file_path",
        file_path=text("path of the file, absolute or relative to the workspace"),
        offset=whole("number of lines to skip, 0 by default", minimum=0),
        limit=whole("number of lines to return", minimum=1),
    ),
    _read,
    read_only=True,
)
WRITE_FILE = Builtin(
    "write_file",
    "Writes a text file, and makes it and its folders if they do not exist. An existing file is replaced.",
    parameters("file_path content", file_path=text("path of the file"), content=text("the whole new content")),
    _write,
)
EDIT = Builtin(
    "edit",
    "Replaces text in a file. old_string has to occur exactly once, with its white space, unless replace_all is set. "
    "An empty old_string makes a new file.",
    parameters(
        "file_path old_string new_string",
        file_path=text("path of the file"),
        old_string=text("the text to replace, exactly as it stands in the file"),
        new_string=text("the text to put in its place"),
        replace_all=flag("replace every occurrence"),
    ),
    _edit,
)
