"""What is known about models by name: context windows, longest replies, prices. Rows, which a user can add to."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dovetail.agent.types import Usage
from dovetail.errors import InputError

_PER = 1_000_000
# What a name may end in beside the name of the model: a date, or a word for the newest one.
_VERSION = re.compile(r"([-@](\d{4}-\d{2}-\d{2}|\d{8}|latest|\d{3}))?")


class Rates(BaseModel):
    """US dollars for a million tokens; what the cache gives or takes costs as much as other input unless told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    written: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def cost(self, usage: Usage) -> float:
        """What the tokens cost, in dollars."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        plain = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
        dollars = plain * self.input + usage.cached_tokens * cached + usage.cache_written_tokens * written
        return (dollars + usage.output_tokens * self.output) / _PER


class LongRates(Rates):
    """What a call costs whose input has more than `above` tokens: all of it, not only what is beyond."""

    above: int = Field(gt=0)


class Prices(Rates):
    """The rates of a model, and those of its long requests where they differ."""

    long: LongRates | None = None

    def cost(self, usage: Usage) -> float:
        """What one call costs, in dollars."""
        if self.long is not None and usage.input_tokens > self.long.above:
            return self.long.cost(usage)
        return super().cost(usage)


class Known(BaseModel):
    """One row: what holds for the model of this name and its dated versions, or with a final `*` for all that begin so.

    `thinking` tells how the model is told its effort: as a budget of tokens, or by the level itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    context: int | None = Field(default=None, gt=0)
    output: int | None = Field(default=None, gt=0)
    usd: Prices | None = None
    thinking: Literal["budget", "level"] = "level"

    def means(self, model: str) -> bool:
        """Whether the row is about a model."""
        if self.name.endswith("*"):
            return model.startswith(self.name[:-1])
        return model.startswith(self.name) and _VERSION.fullmatch(model[len(self.name) :]) is not None


class Catalog:
    """Rows by names; of several that fit, whole names tell before beginnings, then the longest, then the user's."""

    def __init__(self, rows: Iterable[Known] = ()) -> None:
        self.rows = [*rows, *_shipped()]

    def find(self, model: str) -> Known:
        """What is known about a model; an empty row where that is nothing."""
        name = model.rpartition("/")[2]
        fitting = [row for row in self.rows if row.means(name) or row.means(model)]
        return max(fitting, key=lambda row: (not row.name.endswith("*"), len(row.name)), default=Known(name=model))


def read_rows(text: str, place: str = "--prices") -> list[Known]:
    """The rows of a user: JSON text, or the path of a file with it, {"model": {"input": ..., "output": ...}}."""
    try:
        value = json.loads(text if text.lstrip().startswith("{") else Path(os.path.expanduser(text)).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place}: {text[:200]!r} is neither JSON nor a file of it: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{place}: an object is expected", "", _FIX)
    return rows_of(value, place)


def rows_of(table: Mapping[str, Any], place: str) -> list[Known]:
    """The rows of a table of prices by the names of models."""
    rows: list[Known] = []
    for name, prices in table.items():
        try:
            rows.append(Known(name=name, usd=Prices.model_validate(prices)))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = "/".join(map(str, (name, *first["loc"])))
            raise InputError(f"{first['msg']}", f"{place} /{where}", _FIX) from None
    return rows


@cache
def _shipped() -> tuple[Known, ...]:
    text = Path(__file__).with_name("catalog.json").read_text(encoding="utf-8")
    return tuple(Known.model_validate(row) for row in json.loads(text))


_FIX = 'write dollars for a million tokens: {"my-model": {"input": 3, "output": 15, "cached": 0.3}}'
