"""Text files as bytes that come back unchanged: encodings, line ends, binary and huge files."""

from __future__ import annotations

import codecs
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dovetail.agent.tools.base import why
from dovetail.agent.types import ToolError

MAX_EDITED_BYTES = 64 << 20
_SNIFFED = 8192
# How a folder on the way to a file is opened: where the system can, without a right to read it.
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file writes text: bytes that are no text in it survive a round trip as lone surrogates."""

    name: str = "utf-8"
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text after the mark."""
        try:
            return data.removeprefix(self.mark).decode(self.name, "surrogateescape")
        except UnicodeDecodeError:
            raise ToolError("the file begins like UTF-16 text but is none") from None

    def encode(self, text: str) -> bytes:
        """The bytes of a file with this text."""
        errors = "surrogateescape" if self.name == "utf-8" else "surrogatepass"
        try:
            return self.mark + text.encode(self.name, errors)
        except UnicodeEncodeError:
            raise ToolError("the text holds half of a surrogate pair, which no file can hold") from None


def sniff(head: bytes) -> Encoding | None:
    """The encoding that the first bytes of a file show, None if they are not text."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name, mark)
    return None if b"\0" in head else Encoding()


def clean(text: str) -> str:
    """Text that any interface can carry: what was no text in the file is shown as the replacement character."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def _folder(path: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder, reached without following any link.

    The path was resolved when it was permitted. A command that runs beside may have put a link into it since, and what
    it leads to was not permitted.
    """
    descriptor = os.open(path.anchor, _WAY)
    try:
        for name in path.parts[1:]:
            try:
                below = os.open(name, _WAY, dir_fd=descriptor)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
                below = os.open(name, _WAY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read; anything else (a folder, a pipe, a device) is a ToolError and never waits.

    Links are not followed, neither at the end of the path nor on the way.
    """
    try:
        with _folder(path.parent) as folder:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path.name or ".", flags, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {why(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolError(f"{path.name} is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_whole(path: Path) -> tuple[str, Encoding]:
    """The text of a file that is going to be changed."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_EDITED_BYTES:
            raise ToolError(f"{path.name} is larger than {MAX_EDITED_BYTES} bytes; use a shell command to change it")
        data = file.read()
    encoding = sniff(data[:_SNIFFED])
    if encoding is None:
        raise ToolError(f"{path.name} is a binary file")
    return encoding.decode(data), encoding


def newline_of(text: str) -> str:
    """The line end that most lines of a text have."""
    windows = text.count("\r\n")
    return "\r\n" if windows > text.count("\n") - windows else "\n"


def write_whole(path: Path, data: bytes) -> None:
    """Put the bytes in place at once: whoever reads the file sees the old or the new one, never a part.

    Links are not followed, neither at the end of the path nor on the way.
    """
    try:
        with _folder(path.parent, make=True) as folder:
            before = _status(path.name, folder)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise ToolError(f"{path.name} is {'a folder' if stat.S_ISDIR(before.st_mode) else 'no regular file'}")
            beside = f".{path.name[:80]}.{uuid.uuid4().hex}"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(beside, flags, 0o666, dir_fd=folder), "wb") as file:
                    file.write(data)
                    if before is not None:
                        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                os.replace(beside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(beside, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{path.name} cannot be written: {why(error)}") from error


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
