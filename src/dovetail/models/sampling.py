"""From logits and masks to tokens: NumPy where the logits lie in memory, PyTorch where they lie on a device.

The functions are written once, in the names that both libraries share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.models.model import Sampling

_NEGLIGIBLE = 25.0  # below the best score at temperature 1: 50,000 such tokens weigh less than one in a million

Array = Any  # a NumPy array, or a tensor of PyTorch on any device


class Draw(NamedTuple):
    """What decides about the next token of one request: a number from 0 to below 1, and the tokens so far."""

    sampling: Sampling
    chance: float
    tokens: Sequence[int] = ()
    prompt_length: int = 0


class Drawn(NamedTuple):
    """A token, with its logprob under the mask and the likeliest tokens beside it where they were asked for."""

    token: int
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()


def apply_mask(mask: NDArray[np.int32], logits: Array) -> Array:
    """A copy of the logits in which refused tokens, and those beyond the vocabulary, are minus infinity."""
    if not isinstance(logits, np.ndarray):
        from dovetail.integrations.transformers import apply_mask as on_device

        return on_device(mask, logits)
    columns = logits.shape[-1]
    bits = np.unpackbits(mask.view(np.uint8), axis=-1, bitorder="little", count=min(columns, mask.shape[-1] * 32))
    masked = np.full(logits.shape, -np.inf, dtype=logits.dtype)
    np.copyto(masked[..., : bits.shape[-1]], logits[..., : bits.shape[-1]], where=bits.view(np.bool_))
    return masked


def draw(logits: Array, draws: Sequence[Draw]) -> list[Drawn]:
    """One token for each row of masked logits."""
    scores = _adjusted(logits, draws)
    tokens: list[int] = scores.argmax(-1).tolist()
    rows = [row for row, one in enumerate(draws) if one.sampling.temperature > 0]
    if rows:
        sampled = _sample(scores if len(rows) == len(draws) else scores[rows], [draws[row] for row in rows])
        for row, token in zip(rows, sampled, strict=True):
            tokens[row] = token
    return [_drawn(logits[row], token, draws[row].sampling.logprobs) for row, token in enumerate(tokens)]


def _adjusted(logits: Array, draws: Sequence[Draw]) -> Array:
    """The logits after biases and penalties, which leave refused tokens refused."""
    changed = [row for row, one in enumerate(draws) if one.sampling.adjusts]
    if not changed:
        return logits
    scores = logits + 0
    for row in changed:
        _penalize(scores[row], draws[row])
    return scores


def _penalize(scores: Array, one: Draw) -> None:
    """Change the scores of one row in place."""
    sampling, size = one.sampling, scores.shape[-1]
    biased = [token for token in sampling.logit_bias if token < size]
    if biased:
        scores[biased] += _like(scores, [sampling.logit_bias[token] for token in biased])
    if sampling.repetition_penalty != 1:
        seen = list(set(one.tokens))
        part = scores[seen]
        factor = _space(part).where(part > 0, 1 / sampling.repetition_penalty, sampling.repetition_penalty)
        scores[seen] = part * factor
    written = one.tokens[one.prompt_length :]
    if written and (sampling.frequency_penalty or sampling.presence_penalty):
        tokens, counts = np.unique(np.array(written), return_counts=True)
        cost = counts * sampling.frequency_penalty + sampling.presence_penalty
        scores[tokens.tolist()] -= _like(scores, cost)


def _sample(scores: Array, draws: Sequence[Draw]) -> list[int]:
    """A token for each row at its temperature, out of those that its limits leave."""
    if not isinstance(scores, np.ndarray):
        return _choose(scores, draws)
    tokens = []
    for row, one in zip(scores, draws, strict=True):
        # On a processor a row of 49,152 scores took 550 us whole and 60 us by those that weigh anything.
        ids = np.flatnonzero(row > row.max() - _NEGLIGIBLE * one.sampling.temperature)
        tokens.append(int(ids[_choose(row[None, ids], [one])[0]]))
    return tokens


def _choose(scores: Array, draws: Sequence[Draw]) -> list[int]:
    """The place that each row draws."""
    xp = _space(scores)
    temperatures = _like(scores, [one.sampling.temperature for one in draws])
    weights = xp.exp((scores - xp.amax(scores, -1, keepdims=True)) / temperatures[:, None])
    for row, one in enumerate(draws):
        if one.sampling.narrows:
            weights[row] = _narrow(weights[row], one.sampling)
    sums = xp.cumsum(weights, -1, dtype=xp.float64)
    marks = _like(sums, [one.chance for one in draws])[:, None] * sums[:, -1:]
    # The first place whose sum is beyond the mark, so that a weight of 0 is never met.
    places = (sums <= marks).sum(-1).tolist()
    best = scores.argmax(-1).tolist()
    return [place if place < scores.shape[-1] else top for place, top in zip(places, best, strict=True)]


def _narrow(weights: Array, sampling: Sampling) -> Array:
    """The weights of one row, the likeliest of which is 1, with 0 for what the limits leave out."""
    xp = _space(weights)
    if sampling.min_p:
        weights = xp.where(weights >= sampling.min_p, weights, 0.0)
    if 0 < sampling.top_k < weights.shape[-1]:
        least = _largest(weights, sampling.top_k)[0][-1]
        weights = xp.where(weights >= least, weights, 0.0)
    return _nucleus(weights, sampling.top_p) if sampling.top_p < 1 else weights


def _nucleus(weights: Array, top_p: float) -> Array:
    """The weights of the likeliest tokens that have a share of `top_p` together; the others weigh nothing."""
    xp = _space(weights)
    total = weights.sum(dtype=xp.float64)
    # What weighs less than this has less than the rest of the share in all, so that only few need to be sorted.
    some = xp.nonzero(weights.reshape(-1) >= float(total) * (1 - top_p) / weights.shape[-1])
    ids = some[0] if isinstance(some, tuple) else some[:, 0]
    ids = ids[xp.argsort(-weights[ids])]
    ordered = weights[ids]
    before = xp.cumsum(ordered, -1, dtype=xp.float64) - ordered
    kept = ids[before < top_p * total]
    result = xp.zeros_like(weights)
    result[kept] = weights[kept]
    return result


def _drawn(logits: Array, token: int, count: int | None) -> Drawn:
    """The token with its logprob and the `count` likeliest ones; what the mask refuses has no logprob."""
    if count is None:
        return Drawn(token)
    xp = _space(logits)
    shifted = logits - logits.max()
    logs = shifted - xp.log(xp.exp(shifted).sum())
    if not count:
        return Drawn(token, float(logs[token]))
    values, ids = _largest(logs, min(count, logs.shape[-1]))
    top = zip(ids.tolist(), values.tolist(), strict=True)
    return Drawn(token, float(logs[token]), tuple((i, value) for i, value in top if value > -1e30))


def _largest(row: Array, count: int) -> tuple[Array, Array]:
    """The largest values of a row, in order, and their places."""
    if not isinstance(row, np.ndarray):
        return tuple(row.topk(count))
    places = np.argpartition(-row, count - 1)[:count]
    places = places[np.argsort(-row[places], kind="stable")]
    return row[places], places


def _space(array: Array) -> Any:
    """The library whose array this is."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def _like(array: Array, values: Any) -> Array:
    """Values as an array of the same kind, on the same device."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=array.dtype)
    return array.new_tensor(np.asarray(values))
