"""The JSON Schema of the messages of json and stream-json output."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def event_schema() -> dict[str, Any]:
    """The schema of one message; `$defs` has one of each kind by its name."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("events.schema.json").read_text(encoding="utf-8"))
    return schema
