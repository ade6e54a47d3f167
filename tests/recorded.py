"""Recorded answers of other engines, and published data: where they lie, and how a record is read and named.

Recordings that are not ours to publish lie beside the repository, where somebody has them. Elsewhere `python -m
tests.fetch_data` gets what is public.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parent
FETCHED = _TESTS / "data"
RECORDED = Path(os.environ.get("DOVETAIL_CONFORMANCE", _TESTS.parent.parent / "shared" / "conformance"))
FOLDER = RECORDED if RECORDED.is_dir() else FETCHED

# What fetch_data gets from source packages, and where it puts it.
PUBLIC = {
    "jsonschema==4.26.0": "json_schema/official_2020_12.jsonl",
    "llama-cpp-python==0.3.36": "llama_cpp/templates",
    "vllm==0.33.0": "published_templates",
    "trl==1.16.0": "published_templates",
    "axolotl==0.19.0": "published_templates",
    "xgrammar==0.2.8": "xgrammar",
}
_OF_XGRAMMAR = ("ebnf", "json_schema", "regex", "structural_tag", "structural_tag_errors")
COMMAND = "python -m tests.fetch_data"

DIFFERENCES = tomllib.loads((_TESTS / "known_differences.toml").read_text())

_SOURCES = ("structural_tag", "structural_tag_text", "schema", "options", "ebnf", "root_rule_name", "regex")


def is_public(name: str) -> bool:
    """Whether `COMMAND` gets this file or folder."""
    folder, _, file = name.partition("/")
    return file.removesuffix(".jsonl") in _OF_XGRAMMAR if folder == "xgrammar" else name in PUBLIC.values()


def files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that has some."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(errno.ENOENT, f"there is no {pattern}", str(folder))
    return found


def templates(folder: Path) -> list[Path]:
    """The chat templates in a folder that has some."""
    return files(folder, "*.jinja")


def listed(section: str, present: Iterable[str]) -> set[str]:
    """The names in a section of known_differences.toml that are among those present."""
    return set(DIFFERENCES[section]) & set(present)


def records(path: Path) -> Iterator[dict[str, Any]]:
    # Not splitlines: a string may hold a line separator of Unicode as it is.
    return map(json.loads, filter(None, path.read_text().split("\n")))


def as_bytes(text: str | dict[str, str]) -> bytes:
    """A recorded text, which is in hexadecimal where it is not UTF-8."""
    return bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode()


def canonical(source: dict[str, Any]) -> str:
    """The text that is the same for the same source."""
    return json.dumps({name: source[name] for name in _SOURCES if name in source}, sort_keys=True)


def key(record: dict[str, Any]) -> str:
    """The name of a record, which is the same whenever its source is recorded again."""
    return hashlib.sha256(canonical(record).encode()).hexdigest()[:12]
