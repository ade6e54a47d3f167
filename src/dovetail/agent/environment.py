"""The environment that programs started by a run get, and the programs that a run starts for itself."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

# Keys that providers and their SDKs read, by the endings that they share and by name.
_KEY = re.compile(r"(?:^|_)(?:API_?KEYS?|API_?TOKEN|AUTH_TOKEN|ADMIN_KEY|WEBHOOK_SECRET)$", re.IGNORECASE)
_NAMED = frozenset(
    "HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACE_TOKEN AZURE_OPENAI_AD_TOKEN AWS_BEARER_TOKEN_BEDROCK".split()
)
# The interpreter itself: the name of a virtual environment may lie in a workspace, where commands can replace it.
PYTHON = os.path.realpath(sys.executable) if sys.executable else ""
# A value that is shorter than this is no key, but a word that other variables may hold too.
_SHORTEST_KEY = 8


def without_keys(environ: Mapping[str, str] | None = None, keep: Collection[str] = ()) -> dict[str, str]:
    """The variables that hold no key of a provider, under whatever name; those in `keep` stay."""
    environ = os.environ if environ is None else environ
    keys = {name for name in environ if name not in keep and (_KEY.search(name) or name in _NAMED)}
    values = {environ[name] for name in keys if len(environ[name]) >= _SHORTEST_KEY}
    return {
        name: value for name, value in environ.items() if name in keep or (name not in keys and value not in values)
    }


def program_outside(name: str, folders: Iterable[Path]) -> str:
    """The program of this name on the path, "" if there is none but in these folders.

    What a run starts for itself is never looked for where its own commands can put a program of that name.
    """
    inside = [folder.resolve() for folder in folders]
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = Path(place, name)
        if place.startswith("/") and program.is_file() and os.access(program, os.X_OK):
            names = (Path(place).resolve(), program.resolve())
            if not any(one.is_relative_to(folder) for one in names for folder in inside):
                return str(program)
    return ""
