"""Hugging Face Transformers: a logits processor that keeps `generate` inside a format.

`generate` shows a processor whole rows of token ids and never says where a row comes from: beam search reorders and
doubles rows, speculative decoding takes tokens back. So each row is matched by its history: it continues the matcher
that shares the longest beginning with it, rolled back to where they part, and forked where two rows share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dovetail.engine import CompiledGrammar, Matcher, Vocabulary, compile, fill_masks
from dovetail.engine.compiled import Source
from dovetail.errors import MatcherError
from dovetail.extras import install

try:
    import torch
    from transformers import LogitsProcessor
except ImportError as error:
    raise ImportError(f"this needs Transformers: {install('transformers')}") from error

Constraint = CompiledGrammar | Source


class DovetailLogitsProcessor(LogitsProcessor):
    """Allows only tokens that the format can continue with.

    Give one format for all rows, or a list with one per prompt of the batch. The prompt is what the first call shows,
    unless `prompt_length` says how many leading tokens belong to it. One processor serves one `generate` at a time; the
    next may use it again after `reset`, or at once where its prompts differ.
    """

    def __init__(
        self,
        constraint: Constraint | Sequence[Constraint],
        vocabulary: Vocabulary,
        *,
        prompt_length: int | None = None,
    ) -> None:
        constraints = (
            [constraint] if isinstance(constraint, str) or not isinstance(constraint, Sequence) else constraint
        )
        self._grammars = [c if isinstance(c, CompiledGrammar) else compile(c, vocabulary) for c in constraints]
        self._vocabulary = vocabulary
        self._given_length = prompt_length
        self.reset()

    def reset(self) -> None:
        """Forget the generation so far."""
        self._prompts: torch.Tensor | None = None
        self._groups: list[list[_Track]] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """The scores with every token that the format refuses at minus infinity."""
        if not self._continues(input_ids):
            self._start(input_ids)
        assert self._prompts is not None
        histories: list[list[int]] = input_ids[:, self._prompts.shape[1] :].tolist()
        rows = iter(histories)
        self._groups = [_follow(group, list(islice(rows, len(group)))) for group in self._groups]
        mask = self._mask([track for group in self._groups for track in group])
        return cast(torch.FloatTensor, apply_mask(mask, scores))

    def _continues(self, input_ids: torch.Tensor) -> bool:
        """Whether these rows go on from the prompts that were seen before."""
        prompts = self._prompts
        if prompts is None or input_ids.shape[0] != prompts.shape[0] or input_ids.shape[1] < prompts.shape[1]:
            return False
        return torch.equal(input_ids[:, : prompts.shape[1]], prompts)

    def _start(self, input_ids: torch.Tensor) -> None:
        rows, count = input_ids.shape[0], len(self._grammars)
        if rows % count:
            raise MatcherError(f"{count} formats do not divide {rows} rows; give one, or one for each prompt")
        length = input_ids.shape[1] if self._given_length is None else self._given_length
        # A copy, because `generate` may write the next token into the same memory.
        self._prompts = input_ids[:, :length].clone()
        self._groups = []
        for row in range(rows):
            track = _Track(self._grammars[row * count // rows].matcher())
            # Beams of one prompt lie side by side, and only they exchange histories.
            if row and row * count % rows and torch.equal(self._prompts[row], self._prompts[row - 1]):
                self._groups[-1].append(track)
            else:
                self._groups.append([track])

    def _mask(self, tracks: list[_Track]) -> NDArray[np.int32]:
        mask = np.zeros((len(tracks), self._vocabulary.mask_words), dtype=np.int32)
        fill_masks([track.matcher for track in tracks], mask)
        for row, track in enumerate(tracks):
            if track.is_over:
                mask[row] = 0
                for token in self._vocabulary.stop_token_ids:
                    mask[row, token // 32] |= np.uint32(1 << token % 32).astype(np.int32)
        return mask


class _Track:
    """One matcher and the tokens it was shown; those after the first that it refused are kept but not its own."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.history: list[int] = []
        self._taken = 0

    @property
    def is_over(self) -> bool:
        """Finished, or led astray, as beam search does with rows of probability zero where few tokens are allowed."""
        return self.matcher.is_finished or self._taken < len(self.history)

    def fork(self) -> _Track:
        copy = _Track(self.matcher.fork())
        copy.history, copy._taken = list(self.history), self._taken
        return copy

    def shares(self, history: list[int]) -> int:
        """How many leading tokens of `history` this track has seen."""
        length = len(self.history)
        if history[:length] == self.history:
            return length
        return next(i for i, token in enumerate(self.history) if history[i : i + 1] != [token])

    def move_to(self, history: list[int], shared: int) -> None:
        if shared < self._taken:
            self.matcher.rollback(self._taken - shared)
            self._taken = shared
        del self.history[shared:]
        for token in history[shared:]:
            if not self.is_over and self.matcher.accept(token):
                self._taken += 1
            self.history.append(token)


def _follow(tracks: list[_Track], histories: list[list[int]]) -> list[_Track]:
    """A track for each history: the one that shares most with it, forked where it is wanted again."""
    chosen: list[tuple[int, int]] = []
    for row, history in enumerate(histories):
        # The same row first: without beams it is the answer, and equal shares keep it.
        order = sorted(range(len(tracks)), key=lambda i: i != row)
        best = (-1, row)
        for index in order:
            best = max(best, (tracks[index].shares(history), index), key=lambda pair: pair[0])
            if best[0] >= len(history) - 1:
                break
        chosen.append(best)
    last_use = {index: row for row, (_, index) in enumerate(chosen)}
    moved = [tracks[index] if last_use[index] == row else tracks[index].fork() for row, (_, index) in enumerate(chosen)]
    for track, history, (shared, _) in zip(moved, histories, chosen, strict=True):
        track.move_to(history, shared)
    return moved


def apply_mask(mask: NDArray[np.int32], scores: torch.Tensor) -> torch.Tensor:
    """Scores of refused tokens, and of logits beyond the vocabulary, become minus infinity."""
    # The packed words travel to the device, 32 times smaller than the bits, and are opened there.
    words = torch.from_numpy(mask).to(scores.device)
    shifts = torch.arange(32, dtype=torch.int32, device=scores.device)
    allowed = ((words.unsqueeze(-1) >> shifts) & 1).flatten(1).bool()
    columns = scores.shape[-1]
    if columns > allowed.shape[1]:
        allowed = torch.nn.functional.pad(allowed, (0, columns - allowed.shape[1]))
    allowed = allowed[:, :columns]
    return scores.masked_fill(~allowed, -torch.inf)
