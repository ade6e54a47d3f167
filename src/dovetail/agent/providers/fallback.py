"""A second model for when the first one fails."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dovetail.agent.protocols import Provider
from dovetail.agent.types import AuthenticationError, Delta, ProviderError, Request, Restarted


class Fallback:
    """Asks one model until it fails in a way that another may not, and from then on the other."""

    def __init__(self, first: Provider, second: Provider) -> None:
        self._first = first
        self._second = second
        self._now = first

    @property
    def name(self) -> str:
        """The kind of provider that answers now."""
        return self._now.name

    @property
    def model(self) -> str:
        """The model that answers now."""
        return self._now.model

    @property
    def forces_tools(self) -> bool:
        """Whether the model that answers now can be made to call a tool."""
        return self._now.forces_tools

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The reply of the first model, or where it fails that of the second."""
        if self._now is self._first:
            try:
                async for delta in self._first.stream(request):
                    yield delta
                return
            except ProviderError as error:
                if not _may_help(error):
                    raise
                yield Restarted(error.problem, 1, 0.0, error.status, self._second.model)
            self._now = self._second
        async for delta in self._second.stream(request):
            yield delta

    async def close(self) -> None:
        """Let both go."""
        await self._first.close()
        await self._second.close()


def _may_help(error: ProviderError) -> bool:
    """Whether another model may do what this one cannot: it is overloaded, broken, or not there at all."""
    return not isinstance(error, AuthenticationError) and (error.retryable or error.status == 404)
