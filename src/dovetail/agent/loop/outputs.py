"""What the model is shown of long tool outputs, and the files in which it finds the rest."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.agent.protocols import Permissions
from dovetail.agent.types import ApprovalMode, Decision

_READERS = {"read_file": "file_path", "grep_search": "path"}


class Outputs:
    """Keeps the outputs of one run: beside its transcript, or where there is none in a folder that goes with it."""

    def __init__(self, max_chars: int, folder: Path | None) -> None:
        self._max_chars = max_chars
        self._folder = folder
        self._is_temporary = folder is None

    def holds(self, path: Path) -> bool:
        """Whether a path is one of the files kept here."""
        return self._folder is not None and path.resolve().is_relative_to(self._folder.resolve())

    def shown(self, call_id: str, text: str) -> str:
        """The text, or the beginning and end of one that is too long, with the place of the whole."""
        if not 0 <= self._max_chars < len(text):
            return text
        head = self._max_chars * 2 // 5
        tail = self._max_chars - head
        left_out = len(text) - self._max_chars
        where = self._kept(call_id, text)
        gap = f"\n\n[... {left_out} of {len(text)} characters are left out{where} ...]\n\n"
        return text[:head] + gap + text[len(text) - tail :]

    def close(self) -> None:
        """Let go of a temporary folder."""
        if self._is_temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _kept(self, call_id: str, text: str) -> str:
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="dovetail-outputs-"))
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', call_id)[:80]}.txt"
            with open(path, "x", encoding="utf-8", errors="replace", opener=_private) as file:
                file.write(text)
        except OSError as error:
            return f"; they could not be kept: {error.strerror or error}"
        return f"; read_file and grep_search find the whole text in {path}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class WithOutputs:
    """The rules of a run, and beside them leave to read what its own tools put out."""

    def __init__(self, rules: Permissions, outputs: Outputs, workspace: Path) -> None:
        self._rules = rules
        self._outputs = outputs
        self._workspace = workspace

    @property
    def mode(self) -> ApprovalMode:
        """The approval mode of the rules."""
        return self._rules.mode

    def registers(self, name: str, mcp_server: str = "") -> Decision:
        """What the rules say."""
        return self._rules.registers(name, mcp_server)

    def decide(self, name: str, args: Mapping[str, Any], read_only: bool) -> Decision:
        """What the rules say, but for reading an output."""
        path = args.get(_READERS.get(name, ""))
        if isinstance(path, str) and "\0" not in path and self._outputs.holds(self._workspace / path):
            return Decision("allow")
        return self._rules.decide(name, args, read_only)

    def allows_path(self, path: Path, write: bool) -> Decision:
        """What the rules say, but for reading an output."""
        return Decision("allow") if not write and self._outputs.holds(path) else self._rules.allows_path(path, write)
