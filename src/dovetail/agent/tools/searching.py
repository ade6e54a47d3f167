"""grep_search: with ripgrep where it is installed, with our own search where it is not or does not take the pattern.

Both get the same list of files, so that both give the same lines.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import regex

from dovetail.agent.environment import PYTHON, program_outside
from dovetail.agent.patterns import matches_path
from dovetail.agent.protocols import ToolContext
from dovetail.agent.tools.base import Builtin, flag, parameters, permitted, shown, text, ticking, whole
from dovetail.agent.tools.processes import running
from dovetail.agent.tools.text import clean, open_regular, sniff
from dovetail.agent.tools.walking import walk
from dovetail.agent.types import ToolError, ToolOutput

DEFAULT_MATCHES = 250
MAX_LINE = 500
MAX_FILE_BYTES = 64 << 20
_BATCH_BYTES = 500_000  # of file names in one command line
# A brace that begins no repetition is plain text to most engines, but an error to ripgrep's.
_PLAIN_BRACE = re.compile(r"(\\[pPxuU]\{[^}]*\}|\\.|\[(?:\\.|[^\]])*\])|\{(?!\d+(?:,\d*)?\})", re.DOTALL)
_RIPGREP = ("--no-config", "--json", "--crlf", "--no-mmap", "--no-ignore", "--hidden")
_MAX_ANSWER_BYTES = 1 << 30
# Where the script finds its one package: it runs in the interpreter itself, which knows no virtual environment.
_REGEX = str(Path(regex.__file__).parent.parent)
_SCRIPT = str(Path(__file__).with_name("line_search.py"))

Match = tuple[str, int, str]


async def _grep(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    place = permitted(context, args.get("path", "."))
    pattern, ignore_case = args["pattern"], bool(args.get("ignore_case"))
    files = await asyncio.to_thread(_files, place, args.get("glob", ""), context)
    limit = int(args.get("limit", DEFAULT_MATCHES))
    matches = await _ripgrep(pattern, files, ignore_case, limit, context)
    if matches is None:
        matches = await _own(pattern, files, ignore_case, limit, context)
    lines = [f"{shown(context, Path(file))}:{number}:{line[:MAX_LINE]}" for file, number, line in matches[:limit]]
    if not lines:
        return ToolOutput(f"No line matches in {len(files)} files.")
    more = [f"[more than {limit} lines match; narrow the search]"] if len(matches) > limit else []
    return ToolOutput(clean("\n".join(lines + more)), display=f"{len(lines)} lines match")


def _files(place: Path, glob: str, context: ToolContext) -> list[str]:
    if place.is_file():
        return [str(place)]
    if not place.is_dir():
        raise ToolError(f"there is no file or folder {shown(context, place)}")
    wanted = glob if "/" in glob else f"**/{glob}"
    paths: list[str] = []
    check = ticking(context)
    for path, entry in walk(place, context.workspace.resolve()):
        check()
        if not glob or matches_path(wanted, path):
            paths.append(entry.path)
    return paths


def _readable(file: str, context: ToolContext) -> bool:
    """Whether matches in the file may be shown; asked only of files that have some, since to ask takes longer."""
    return context.permissions.allows_path(Path(file), write=False).verdict == "allow"


async def _ripgrep(
    pattern: str, files: Sequence[str], ignore_case: bool, limit: int, context: ToolContext
) -> list[Match] | None:
    """The matches that ripgrep finds, None where there is no ripgrep or it does not take the pattern."""
    program = program_outside("rg", [context.workspace])
    if not program:
        return None
    plain = _PLAIN_BRACE.sub(lambda match: match[1] or r"\{", pattern)
    sizes = ["--max-filesize", str(MAX_FILE_BYTES), "--max-count", str(limit + 1)]
    command = [program, *_RIPGREP, *sizes, *(["--ignore-case"] if ignore_case else []), "-e", plain, "--"]
    listed: list[Match] = []
    try:
        async with asyncio.timeout(context.limits.timeout_s):
            for batch in _batches(files):
                matches = await _ripgrep_files([*command, *batch])
                for file in batch:  # ripgrep searches files side by side and tells of them in any order
                    if file in matches and _readable(file, context):
                        listed += matches[file]
                if len(listed) > limit:
                    return listed
    except TimeoutError:
        raise ToolError("the search took too long; narrow it") from None
    except _Refused:
        return None
    return listed


class _Refused(Exception):  # noqa: N818 - it is caught a few lines above and no error of ours
    """ripgrep does not take the pattern."""


async def _ripgrep_files(command: Sequence[str]) -> dict[str, list[Match]]:
    by_file: dict[str, list[Match]] = {}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    async with running(*command, limit=MAX_FILE_BYTES * 2, **pipes) as process:
        assert process.stdout is not None
        async for line in process.stdout:
            message = json.loads(line)
            data = message["data"]
            if message["type"] == "match":
                file = _text(data["path"])
                match = (file, data["line_number"], _text(data["lines"]).rstrip("\r\n"))
                by_file.setdefault(file, []).append(match)
            elif message["type"] == "end" and data["binary_offset"] is not None:
                by_file.pop(_text(data["path"]), None)
        if await process.wait() > 1:
            raise _Refused
    return by_file


def _text(value: Mapping[str, str]) -> str:
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "surrogateescape")


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for file in files:
        batch.append(file)
        size += len(os.fsencode(file)) + 1
        if size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def _own(pattern: str, files: Sequence[str], ignore_case: bool, limit: int, context: ToolContext) -> list[Match]:
    """The matches that our own search finds, in a process that can be killed whatever the pattern does."""
    seconds = context.limits.timeout_s
    order = {"pattern": pattern, "ignore_case": ignore_case, "limit": limit, "seconds": math.ceil(seconds) + 1}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    # Neither the workspace nor the folder of the script may lend it modules.
    started = running(PYTHON, "-I", _SCRIPT, _REGEX, cwd="/", limit=_MAX_ANSWER_BYTES, **pipes)
    try:
        async with asyncio.timeout(seconds), started as process:
            return await _asked(process, order, files, context)
    except TimeoutError:
        raise ToolError("the pattern takes too long to match; simplify it, or narrow the search") from None


async def _asked(
    process: asyncio.subprocess.Process, order: Mapping[str, Any], files: Sequence[str], context: ToolContext
) -> list[Match]:
    opening = await _exchange(process, json.dumps(order).encode() + b"\n")
    if opening["error"]:
        raise ToolError(f"the pattern is no regular expression: {opening['error']}")
    hits: list[Match] = []
    for file in files:
        text = await asyncio.to_thread(_whole, file)
        if text is None:
            continue
        data = text.encode("utf-8", "surrogatepass")
        lines = await _exchange(process, len(data).to_bytes(8, "big") + data)
        if lines and _readable(file, context):
            hits += [(file, number, line) for number, line in lines]
        if len(hits) > order["limit"]:
            break
    return hits


async def _exchange(process: asyncio.subprocess.Process, message: bytes) -> Any:
    """The answer of the search to one message."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(message)
        await process.stdin.drain()
        answer = await process.stdout.readline()
    except (BrokenPipeError, ConnectionResetError, ValueError):
        answer = b""
    if not answer:
        raise ToolError("the search gave up: the pattern or a file takes too much memory; narrow it")
    return json.loads(answer)


def _whole(file: str) -> str | None:
    """The text of a file with plain line ends; None if it is no text, too large or gone."""
    try:
        with open_regular(Path(file)) as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
        encoding = sniff(data)
        if encoding is None or len(data) > MAX_FILE_BYTES:
            return None
        text = encoding.decode(data)
    except ToolError:
        return None
    text = text.replace("\r\n", "\n")
    return text.removesuffix("\r") if text else None


GREP = Builtin(
    "grep_search",
    "Searches the content of files for a regular expression and returns path:line:text for each line that matches. "
    "Files that .gitignore leaves out are not searched.",
    parameters(
        "pattern",
        pattern=text("the regular expression, matched within one line"),
        path=text("the file or folder to search, the workspace by default"),
        glob=text("search only files that match this glob, such as *.py"),
        ignore_case=flag("take upper and lower case for the same"),
        limit=whole("the most lines to return", minimum=1, maximum=10_000),
    ),
    _grep,
    read_only=True,
)
