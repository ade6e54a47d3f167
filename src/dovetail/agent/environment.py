"""The environment that programs started by a run get, and the programs that a run starts for itself."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

# Keys that providers and their SDKs read, by the endings that they share and by name.
_KEY = re.compile(
    r"(?:^|_)(?:API_?KEYS?|API_?TOKENS?|AUTH_TOKEN|ADMIN_KEY|WEBHOOK_SECRET)(?:_(?!FILE|PATH|NAME|ID|URL)[A-Z0-9]{1,12})?\d*$",
    re.IGNORECASE,
)
_OF_PROVIDER = re.compile(
    r"(?:^|_)(?:OPENAI|ANTHROPIC|CLAUDE|GEMINI|MISTRAL|COHERE|GROQ|XAI|DEEPSEEK|TOGETHER|OPENROUTER|FIREWORKS|CEREBRAS"
    r"|PERPLEXITY|DASHSCOPE|QWEN|MOONSHOT|LITELLM|BEDROCK|DATABRICKS|NVIDIA)(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET)\d*$",
    re.IGNORECASE,
)
_NAMED = frozenset(
    "HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACE_TOKEN AZURE_OPENAI_AD_TOKEN AWS_BEARER_TOKEN_BEDROCK".split()
)
# The interpreter itself: the name of a virtual environment may lie in a workspace, where commands can replace it.
PYTHON = os.path.realpath(sys.executable) if sys.executable else ""
# Keys that show what they are, whatever the name of their variable.
_SHAPE = re.compile(r"\b(?:sk-[\w-]{20,}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}|gsk_\w{30,}|xai-\w{30,})")
# A value that is shorter than this is no key, but a word that other variables may hold too.
_SHORTEST_KEY = 8
# One that is shorter than this may be part of another value by chance.
_SHORTEST_PART = 16


def without_keys(environ: Mapping[str, str] | None = None, keep: Collection[str] = ()) -> dict[str, str]:
    """The variables that hold no key of a provider, under whatever name and among whatever text, and those to keep."""
    environ = os.environ if environ is None else environ
    keys = {name for name in environ if name not in keep and _is_key(name)}
    values = {environ[name] for name in keys if len(environ[name]) >= _SHORTEST_KEY}

    def is_clean(name: str, value: str) -> bool:
        holds = any(key == value or (key in value and len(key) >= _SHORTEST_PART) for key in values)
        return not (name in keys or holds or _SHAPE.search(value))

    return {name: value for name, value in environ.items() if name in keep or is_clean(name, value)}


def _is_key(name: str) -> bool:
    return bool(_KEY.search(name) or _OF_PROVIDER.search(name)) or name in _NAMED


def own_folders() -> Iterator[Path]:
    """Where this interpreter finds what it has yet to import, and the programs installed beside it.

    What a command of a run writes there would run in the run itself, or for a hook, outside of any sandbox.
    """
    places = {sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib", "scripts")}
    places |= {place for place in sys.path if place.endswith(("site-packages", "dist-packages"))}
    return map(Path, filter(None, places))


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
