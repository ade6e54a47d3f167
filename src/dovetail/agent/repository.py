"""What git obeys in a working tree beside its own folder: where the settings say that hooks and more settings are.

obeyed(root, home)    files and folders that a run must not write, although they look like any other
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_MAX_BYTES = 1 << 20
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)", re.ASCII)
_VALUE = re.compile(r'\s*(hookspath|path)\s*=\s*"?([^"#;\n]*)', re.IGNORECASE)


def obeyed(root: Path, home: Path) -> Iterator[Path]:
    """The hooks and the included settings of the repository at `root`, as its settings and those of the user name them.

    What lies elsewhere is named too: the caller knows what can be written at all.
    """
    own = root / ".git" / "config"
    for file in (own, home / ".gitconfig", home / ".config" / "git" / "config"):
        for section, key, value in _values(file):
            path = Path(value.replace("~", str(home), 1) if value.startswith("~/") else value)
            if section == "core" and key == "hookspath":
                hooks = root / path
                # The scripts that husky's own hooks call lie beside their folder.
                yield hooks.parent if hooks.name == "_" else hooks
            elif section in ("include", "includeif") and key == "path":
                yield file.parent / path


def _values(file: Path) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of the lines that matter."""
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    section = ""
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section = found[1].lower()
            line = line.partition("]")[2]
        if (value := _VALUE.match(line)) and value[2].strip():
            yield section, value[1].lower(), value[2].strip()
