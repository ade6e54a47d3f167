"""list_directory and glob."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.agent.patterns import matches_path
from dovetail.agent.protocols import ToolContext
from dovetail.agent.tools.base import Builtin, flag, parameters, permitted, shown, text, ticking, why
from dovetail.agent.tools.text import clean
from dovetail.agent.tools.walking import walk
from dovetail.agent.types import ToolError, ToolOutput

MAX_ENTRIES = 1000


async def _list(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    folder = permitted(context, args.get("path", "."))
    ignored = tuple(args.get("ignore", ()))
    return await asyncio.to_thread(_listing, folder, ignored, shown(context, folder))


def _listing(folder: Path, ignored: tuple[str, ...], name: str) -> ToolOutput:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: (not _is_folder(entry), entry.name))
    except OSError as error:
        raise ToolError(f"{name} cannot be listed: {why(error)}") from error
    lines = [
        f"{entry.name}/" if _is_folder(entry) else f"{entry.name}{_target(entry)}"
        for entry in entries
        if not any(matches_path(pattern, entry.name) for pattern in ignored)
    ]
    return _lines(f"{name}:", lines, "is empty" if not entries else "has nothing else", name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _target(entry: os.DirEntry[str]) -> str:
    return f" -> {os.readlink(entry.path)}" if entry.is_symlink() else ""


async def _glob(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    folder = permitted(context, args.get("path", "."))
    if not folder.is_dir():
        raise ToolError(f"{args.get('path')} is not a folder")
    pattern = args["pattern"].removeprefix("./")
    root = f"{folder}/"
    if pattern.startswith(root):
        pattern = pattern.removeprefix(root)
    if pattern.startswith(("/", "../")) or "/../" in pattern:
        raise ToolError("the pattern leads out of the folder: give the folder in `path`")
    return await asyncio.to_thread(_matching, folder, pattern, bool(args.get("include_ignored")), context)


def _matching(folder: Path, pattern: str, ignored: bool, context: ToolContext) -> ToolOutput:
    lines: list[str] = []
    check = ticking(context)
    for path, _entry in walk(folder, context.workspace.resolve(), ignored=ignored):
        check()
        # Only what is shown is asked about: to ask takes longer than to find.
        if matches_path(pattern, path) and (len(lines) > MAX_ENTRIES or _readable(context, folder / path)):
            lines.append(shown(context, folder / path) if len(lines) <= MAX_ENTRIES else "")
    return _lines("", lines, f"has no file that matches {pattern}", shown(context, folder))


def _readable(context: ToolContext, path: Path) -> bool:
    return context.permissions.allows_path(path, write=False).verdict == "allow"


def _lines(title: str, lines: list[str], nothing: str, name: str) -> ToolOutput:
    if not lines:
        return ToolOutput(f"{name} {nothing}.")
    more = [f"[{len(lines) - MAX_ENTRIES} more]"] if len(lines) > MAX_ENTRIES else []
    head = [title] if title else []
    return ToolOutput(clean("\n".join([*head, *lines[:MAX_ENTRIES], *more])), display=f"{len(lines)} found")


LIST_DIRECTORY = Builtin(
    "list_directory",
    "Lists the files and folders in a folder; names of folders end in a slash.",
    parameters(
        "",
        path=text("the folder, the workspace by default"),
        ignore={"type": "array", "items": {"type": "string"}, "description": "globs of names to leave out"},
    ),
    _list,
    read_only=True,
)
GLOB = Builtin(
    "glob",
    "Finds files by a glob such as **/*.py. Files that .gitignore leaves out are left out here.",
    parameters(
        "pattern",
        pattern=text("glob with *, **, ?, [...] and {a,b}, relative to the folder"),
        path=text("the folder to search, the workspace by default"),
        include_ignored=flag("also find files that .gitignore leaves out"),
    ),
    _glob,
    read_only=True,
)
