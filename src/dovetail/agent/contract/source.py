"""Where a schema comes from: a literal, or a file that is named with @."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from dovetail.agent.contract.problems import ContractError

MAX_FILE_BYTES = 4 << 20


def read_schema(raw: str, launch_directory: Path) -> dict[str, Any]:
    """The schema that the value of `--json-schema` stands for; a relative path counts from `launch_directory`."""
    text = raw.strip()
    if not text:
        raise ContractError("--json-schema cannot be empty.", "", "give a JSON Schema, or @ and the path of one")
    value = _from_file(text[1:], launch_directory) if text.startswith("@") else _from_text(text)
    if not isinstance(value, dict):
        raise ContractError("--json-schema must be a JSON object describing a schema.")
    return value


def _from_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ContractError("--json-schema is not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        raise ContractError(f"--json-schema is not valid JSON: {error}") from None


def _from_file(name: str, launch_directory: Path) -> Any:
    path = launch_directory / Path(os.path.expanduser(name))
    try:
        data = _regular_file(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ContractError(f'--json-schema could not read "{path}": {reason}') from None
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        # The parser's own words would quote the file, which may be anything that its user can read.
        raise ContractError(f'--json-schema content of "{path}" is not valid JSON.') from None


def _regular_file(path: Path) -> bytes:
    """The bytes of a file; what is no regular file is never waited for, and a huge one not read."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ContractError(f'--json-schema "@{path}" must be a regular file.')
    # The file is opened without waiting and checked again: it may have been replaced since.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ContractError(f'--json-schema "@{path}" must be a regular file.')
        if status.st_size > MAX_FILE_BYTES:
            raise ContractError(
                f'--json-schema file "{path}" is {status.st_size} bytes (>{MAX_FILE_BYTES}). Refusing to read; '
                "is it really a schema?"
            )
        return file.read(MAX_FILE_BYTES)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
