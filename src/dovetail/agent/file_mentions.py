"""Files that a prompt mentions as @path: their text goes to the model with the prompt."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dovetail.agent.exit_reasons import HaltError
from dovetail.agent.images import media_type, read_image
from dovetail.agent.protocols import Permissions
from dovetail.agent.types import Image

MAX_BYTES = 1 << 20
_MENTION = re.compile(r"(?<!\S)@((?:\\ |\S)+)")
# What begins like this is meant as a path; anything else may be somebody's handle, or a package such as @types/node.
_PATH = re.compile(r"\.{0,2}/|~/")


def expand_mentions(prompt: str, workspace: Path, permissions: Permissions) -> tuple[str, tuple[Image, ...]]:
    """What the user typed, followed by the text of the files that it mentions, and the images among them.

    A mention that is no file is text, unless it begins as a path does: then the run ends as an input error.
    """
    parts, images = [prompt], []
    for written in dict.fromkeys(mention[1] for mention in _MENTION.finditer(prompt)):
        name = written.replace("\\ ", " ").rstrip(".,;:!?")
        path = workspace / (Path(os.path.expanduser(name)) if name.startswith("~/") else name)
        if not _exists(path):
            if _PATH.match(name):
                raise HaltError("input_error", f"The prompt mentions @{name}, but there is no such file.")
            continue
        content = _content(name, path, permissions)
        if isinstance(content, Image):
            images.append(content)
        else:
            parts.append(f"--- {name} ---\n{content}")
    return "\n\n".join(parts), tuple(images)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _content(name: str, path: Path, permissions: Permissions) -> str | Image:
    decision = permissions.allows_path(path, write=False)
    if decision.verdict != "allow":
        raise HaltError("input_error", f"The prompt mentions @{name}, but {decision.reason or 'it may not be read'}.")
    try:
        if path.is_dir():
            return "\n".join(sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir()))
        if not path.is_file():
            raise HaltError("input_error", f"The prompt mentions @{name}, which is no regular file.")
        with path.open("rb") as file:
            head = file.read(16)
            if media_type(head):
                return read_image(path)
            data = head + file.read(MAX_BYTES + 1 - len(head))
    except OSError as error:
        raise HaltError("input_error", f"The prompt mentions @{name}, but: {error.strerror}.") from None
    cut = "\n[... the rest of the file is left out ...]" if len(data) > MAX_BYTES else ""
    return data[:MAX_BYTES].decode("utf-8", "replace") + cut
