"""Attempts one after the other: what may pass is tried again after a pause, and the stream says so."""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from dovetail.agent.types import AuthenticationError, Delta, Finish, ProviderError, ProviderOptions, Request, Restarted

# Overloaded, too early, timed out, in conflict; every 5xx beside them.
_PASSING = frozenset((408, 409, 425, 429))

Attempt = Callable[[], AsyncGenerator[Delta, None]]


@dataclass(frozen=True, slots=True)
class Retries:
    """How often an attempt is repeated and how long the pauses are: each twice as long as the one before.

    A service that names the pause itself is obeyed, up to `longest_wait_s`.
    """

    count: int = 5
    first_pause_s: float = 0.5
    longest_pause_s: float = 60.0
    longest_wait_s: float = 300.0

    def pause_s(self, attempt: int, error: ProviderError) -> float | None:
        """The pause behind this attempt (the first is 1); None where there is no point in another."""
        if not error.retryable or attempt > self.count:
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s if error.retry_after_s <= self.longest_wait_s else None
        longest = min(self.longest_pause_s, self.first_pause_s * 2.0 ** min(attempt - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # so that many who failed together do not come back together


class Service(ABC):
    """A model behind the network: a request is attempted again where that may help."""

    forces_tools = True

    def __init__(self, options: ProviderOptions) -> None:
        self.model = options.model
        self._options = options
        # Further fields of each request; the first pause stands among them.
        self._extra: dict[str, Any] = dict(options.extra)
        self._retries = Retries(options.max_retries, self._extra.pop("backoff_s", 0.5))

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The reply, with new attempts where one fails."""
        return retried(lambda: self._attempt(request), self._retries, self._options.timeout_s)

    @abstractmethod
    def _attempt(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The reply of one attempt."""


async def retried(attempt: Attempt, retries: Retries, timeout_s: float | None = None) -> AsyncGenerator[Delta, None]:
    """The deltas of the first attempt that comes to its end in time, with Restarted before each new one."""
    number = 0
    while True:
        number += 1
        stream = attempt()
        deadline = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        try:
            while (delta := await _next(stream, deadline)) is not None:
                yield delta
                if isinstance(delta, Finish):
                    return
            raise ProviderError("the stream ended before the reply did", retryable=True)
        except ProviderError as error:
            pause = retries.pause_s(number, error)
            if pause is None:
                raise
            failed = error
        finally:
            await stream.aclose()
        yield Restarted(failed.problem, number, pause, failed.status)
        await asyncio.sleep(pause)


async def _next(stream: AsyncGenerator[Delta, None], deadline: float | None) -> Delta | None:
    """The next delta, None at the end; ProviderError once the time of the whole request is up."""
    try:
        async with asyncio.timeout_at(deadline):
            return await anext(stream, None)
    except TimeoutError:
        raise ProviderError("the model took too long to answer", retryable=True) from None


def status_error(problem: str, status: int, headers: Mapping[str, str] | None = None) -> ProviderError:
    """The error that an HTTP status stands for."""
    if status in (401, 403):
        return AuthenticationError(problem, status=status)
    retryable = status in _PASSING or status >= 500
    return ProviderError(problem, status=status, retryable=retryable, retry_after_s=retry_after_s(headers or {}))


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """How long the service wants us to wait, where it says so in seconds, milliseconds or as a date."""
    milliseconds, text = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
