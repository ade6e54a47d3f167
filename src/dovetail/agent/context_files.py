"""AGENTS.md and CLAUDE.md: what the user and the project want a model to know before it works there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dovetail.agent.protocols import Permissions

NAMES = ("AGENTS.md", "CLAUDE.md")
MAX_BYTES = 64 << 10


def context_files(workspace: Path, home: Path, permissions: Permissions) -> dict[str, str]:
    """The texts of these files by their paths: the user's, then those from the root of the repository downwards.

    A text that stands in two files counts once; one that a rule forbids to read, or a link that leads out of the
    repository, is left out.
    """
    texts: dict[str, str] = {}
    for path, root in _candidates(workspace, home):
        text = _text(path, root)
        inside = path.is_relative_to(workspace)
        if text.strip() and text not in texts.values():
            if inside and permissions.allows_path(path, write=False).verdict != "allow":
                continue
            texts[str(path)] = text
    return texts


def instructions(files: dict[str, str]) -> str:
    """The part of the system prompt that has the texts."""
    parts = [f"Instructions from {path}:\n{text.strip()}" for path, text in files.items()]
    return "\n\n".join(parts)


def _candidates(workspace: Path, home: Path) -> Iterator[tuple[Path, Path]]:
    """The places to look at, each with the folder that its file must lie in, links resolved."""
    above = [workspace, *workspace.parents]
    root = next((folder for folder in above if (folder / ".git").exists()), workspace)
    project = above[: above.index(root) + 1]
    for folder, top in [(home, home), *((folder, root) for folder in reversed(project))]:
        for name in NAMES:
            yield folder / name, top


def _text(path: Path, root: Path) -> str:
    try:
        if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
            return ""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except (OSError, RuntimeError):
        return ""
