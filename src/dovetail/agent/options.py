"""What flags, environment and settings say together about the model and the limits of a run; flags count first."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TypeVar

from dovetail.agent.flags import Flags
from dovetail.agent.loop.budget import (
    MAX_TOKENS,
    Limits,
    parse_count,
    parse_dollars,
    parse_duration,
)
from dovetail.agent.providers.catalog import Catalog, read_rows, rows_of
from dovetail.agent.settings import Settings
from dovetail.agent.types import ProviderOptions
from dovetail.errors import InputError

MAX_TEMPERATURE = 2.0
T = TypeVar("T")


def limits_of(flags: Flags, settings: Settings, environ: Mapping[str, str] = os.environ) -> Limits:
    """What a run may use."""
    model = settings.model
    parallel = environ.get("DOVETAIL_MAX_TOOL_CONCURRENCY", "10")
    if model.max_wall_time_seconds != -1:
        parse_duration(str(model.max_wall_time_seconds), "settings.json: model.maxWallTimeSeconds")
    wall_time = None if flags.max_wall_time is None else parse_duration(flags.max_wall_time)
    cost = None if flags.max_cost is None else parse_dollars(flags.max_cost)
    return Limits(
        max_turns=_count(flags.max_session_turns, "--max-session-turns", model.max_session_turns),
        max_wall_time_s=_first(wall_time, model.max_wall_time_seconds),
        max_tool_calls=_count(flags.max_tool_calls, "--max-tool-calls", model.max_tool_calls),
        max_structured_retries=_count(flags.max_structured_retries, "--max-structured-retries", 10),
        max_subagent_depth=flags.max_subagent_depth,
        max_parallel=max(1, parse_count(parallel, "DOVETAIL_MAX_TOOL_CONCURRENCY", 1000)),
        max_calls_per_prompt=model.max_tool_calls_per_turn,
        max_tokens_total=_count(flags.max_tokens_total, "--max-tokens-total", model.max_tokens_total, MAX_TOKENS),
        max_cost_usd=_first(cost, model.max_cost_usd),
        loop=settings.loop.limits,
    )


def provider_options(flags: Flags, settings: Settings, environ: Mapping[str, str] = os.environ) -> ProviderOptions:
    """How to reach the model, and how it is asked."""
    model = settings.model
    timeout = None if flags.timeout is None else parse_duration(flags.timeout, "--timeout")
    tokens = None if flags.max_tokens is None else _whole(flags.max_tokens, "--max-tokens", 1, MAX_TOKENS)
    retries = None if flags.max_retries is None else _whole(flags.max_retries, "--max-retries", 0, 100)
    return ProviderOptions(
        name=flags.provider or environ.get("DOVETAIL_PROVIDER") or model.provider,
        model=flags.model or environ.get("DOVETAIL_MODEL") or model.name,
        base_url=flags.base_url or environ.get("DOVETAIL_BASE_URL") or model.base_url,
        seed=flags.seed,
        timeout_s=_first(timeout, model.timeout_seconds),
        max_retries=_first(retries, model.max_retries),
        max_output_tokens=tokens or model.max_output_tokens,
        temperature=_temperature(flags.temperature) if flags.temperature is not None else model.temperature,
        effort=flags.effort or model.effort,
        fallback_model=flags.fallback_model or model.fallback,
    )


def catalog_of(flags: Flags, settings: Settings) -> Catalog:
    """What is known about models, with the user's own prices first."""
    own = [] if flags.prices is None else read_rows(flags.prices)
    return Catalog([*own, *rows_of(settings.model.prices, "settings.json: model.prices")])


def check_prices(limits: Limits, catalog: Catalog, *models: str) -> None:
    """Raise InputError where costs are to be limited and the prices of a model are not known."""
    unknown = [model for model in models if model and catalog.find(model).usd is None]
    if limits.max_cost_usd >= 0 and unknown:
        raise InputError(
            f"--max-cost needs the prices of {unknown[0]!r}, which are not known",
            "",
            f"""pass --prices '{{"{unknown[0]}": {{"input": 3, "output": 15}}}}', in dollars for a million tokens""",
        )


def _first(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given


def _count(written: str | None, name: str, otherwise: int, most: int = 1_000_000) -> int:
    return otherwise if written is None else parse_count(written, name, most)


def _whole(text: str, name: str, least: int, most: int) -> int:
    if not (text.isdecimal() and least <= int(text[:20]) <= most):
        raise InputError(f"{name}: {text!r} is not a whole number from {least} to {most}")
    return int(text)


def _temperature(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= MAX_TEMPERATURE:
        raise InputError(f"--temperature: {text!r} is not a number from 0 to {MAX_TEMPERATURE:g}")
    return number
