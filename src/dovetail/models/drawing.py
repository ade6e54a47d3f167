"""From logits and masks to tokens, for all rows at once and on the device that holds the logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from dovetail.models.model import Sampling


class Drawn(NamedTuple):
    """A token with its logprob under the mask, and the likeliest ones beside it where they were asked for."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


def draw(logits: torch.Tensor, samplings: Sequence[Sampling], chances: Sequence[float]) -> list[Drawn]:
    """One token for each row of masked logits; `chances` are numbers from 0 to below 1, which decide."""
    device = logits.device
    logs = torch.log_softmax(logits, dim=-1)
    temperatures = torch.tensor([s.temperature or 1.0 for s in samplings], device=device).unsqueeze(1)
    weights = torch.softmax(logits / temperatures, dim=-1, dtype=torch.float64)
    if any(s.top_p < 1 for s in samplings):
        weights = _nucleus(weights, torch.tensor([s.top_p for s in samplings], device=device, dtype=torch.float64))
    sums = weights.cumsum(dim=-1)
    marks = torch.tensor(chances, device=device, dtype=torch.float64).unsqueeze(1) * sums[:, -1:]
    # To the right of the mark, so that a token of weight 0 is never met.
    tokens = torch.searchsorted(sums, marks, right=True).squeeze(1)
    best = logits.argmax(dim=-1)
    greedy = torch.tensor([s.temperature == 0 for s in samplings], device=device)
    tokens = torch.where(greedy | (tokens >= logits.shape[-1]), best, tokens)
    own = logs.gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()
    tops = _tops(logs, [s.logprobs or 0 for s in samplings])
    return [Drawn(*row) for row in zip(tokens.tolist(), own, tops, strict=True)]


def _nucleus(weights: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """The weights of the likeliest tokens that have a share of `top_p` together; the others weigh nothing."""
    ordered, order = weights.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    kept = ordered.masked_fill(before >= top_p.unsqueeze(1), 0.0)
    return torch.zeros_like(weights).scatter(1, order, kept)


def _tops(logs: torch.Tensor, counts: list[int]) -> list[tuple[tuple[int, float], ...]]:
    most = min(max(counts), logs.shape[-1])
    if most == 0:
        return [()] * len(counts)
    values, ids = logs.topk(most, dim=-1)
    rows = zip(ids.tolist(), values.tolist(), counts, strict=True)
    # What the mask refuses has no logprob.
    return [tuple((i, v) for i, v in zip(row, logprobs, strict=True) if v > -1e30)[:n] for row, logprobs, n in rows]
