"""Headless runs from Python: `run` and `run_async`.

Everything heavy is imported when a run starts, so that the names cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from dovetail.errors import DovetailError

if TYPE_CHECKING:
    from dovetail.agent.protocols import Hooks, Provider, Tool
    from dovetail.agent.types import ApprovalMode, Usage

T = TypeVar("T")
Tools = Sequence["Tool | Callable[..., Any]"]


class RunError(DovetailError):
    """A run ended without its answer; `result` has all that is known about it."""

    def __init__(self, message: str, result: RunResult[Any]) -> None:
        super().__init__(message)
        self.result = result
