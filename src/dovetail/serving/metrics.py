"""Counters and histograms in the text format of Prometheus."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

_TIMES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# From 10 microseconds, each bound 1.25 times the one before it, so that a percentile is read to a quarter of itself.
_SHORT_TIMES_S = tuple(round(1e-5 * 1.25**i, 9) for i in range(40))

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that grows, or a level that rises and falls, by labels."""

    def __init__(self, name: str, help: str, kind: str = "counter") -> None:
        self._name, self._help, self._kind = name, help, kind
        self._values: dict[Labels, float] = defaultdict(float)

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to the number with these labels."""
        self._values[tuple(labels.items())] += amount

    def lines(self) -> Iterator[str]:
        """The lines that a scrape reads."""
        yield f"# HELP {self._name} {self._help}"
        yield f"# TYPE {self._name} {self._kind}"
        for labels, value in sorted(self._values.items()):
            yield f"{self._name}{_labels(labels)} {value:g}"


class Histogram:
    """How often a time was at most so long."""

    def __init__(self, name: str, help: str, bounds: tuple[float, ...] = _TIMES_S) -> None:
        self._name, self._help, self._bounds = name, help, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a time."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        """The lines that a scrape reads."""
        yield f"# HELP {self._name} {self._help}"
        yield f"# TYPE {self._name} histogram"
        total = 0
        for bound, count in zip([*self._bounds, float("inf")], self._counts, strict=True):
            total += count
            yield f'{self._name}_bucket{{le="{"+Inf" if bound == float("inf") else f"{bound:g}"}"}} {total}'
        yield f"{self._name}_sum {self._sum:g}"
        yield f"{self._name}_count {total}"


class Metrics:
    """What the server counts; nothing in it tells what anybody said. `more` has lines that others add to a scrape."""

    def __init__(self, more: Callable[[], Iterable[str]] = tuple) -> None:
        self._more = more
        self.requests = Counter("dovetail_requests_total", "Requests by route and status.")
        self.running = Counter("dovetail_requests_running", "Answers that are being written.", "gauge")
        self.cancelled = Counter("dovetail_requests_cancelled_total", "Answers whose reader went away.")
        self.tokens = Counter("dovetail_tokens_total", "Tokens by kind: prompt, completion, reasoning.")
        self.finished = Counter("dovetail_answers_total", "Answers by the reason for which they ended.")
        self.first_s = Histogram("dovetail_first_piece_seconds", "Time from a request to the start of its answer.")
        self.answer_s = Histogram("dovetail_answer_seconds", "Time from a request to the end of its answer.")
        self.token_s = Histogram(
            "dovetail_token_seconds",
            "Own time for one piece of an answer: reading the token and writing the event.",
            _SHORT_TIMES_S,
        )

    def text(self) -> str:
        """All of it."""
        metrics = [metric for metric in vars(self).values() if isinstance(metric, Counter | Histogram)]
        lines = [line for metric in metrics for line in metric.lines()]
        return "".join(f"{line}\n" for line in (*lines, *self._more()))


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
