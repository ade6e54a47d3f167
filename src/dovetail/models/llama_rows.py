"""What llama.cpp remembers of each running generation: one context in which every generation is a sequence.

All sequences share the cells of one cache. A new row takes over the cells of the row whose tokens begin alike, one that
runs or one that ended a while ago, and reads only the rest of its prompt.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from dovetail.errors import ModelError
from dovetail.models.batching import PIECE, NoRoomError

_KEPT = 8  # rows that have ended and whose cells wait for a prompt that begins alike
_WORTH = 8  # tokens below which sharing saves nothing
_FULL = 1  # what llama_decode returns where no cells are free


class LlamaRow:
    """One generation: its sequence in the cache, and the tokens that are in it."""

    def __init__(self, sequence: int, tokens: list[int]) -> None:
        self.sequence = sequence
        self.tokens = tokens

    @property
    def length(self) -> int:
        """How many tokens the model has seen."""
        return len(self.tokens)


class LlamaRows:
    """Running generations in one context of llama.cpp, which belongs to this object."""

    def __init__(self, model: Any, *, cells: int, max_rows: int, threads: int, shares: bool = True) -> None:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells
        params.n_batch = max(PIECE, max_rows)
        params.n_seq_max = max_rows + _KEPT + 1
        params.kv_unified = True
        params.swa_full = True  # so that windows of attention can be shared, too
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        self._context = llama_cpp.llama_init_from_model(model, params)
        if not self._context:
            raise ModelError(f"llama.cpp has no memory for {cells} tokens", "", "choose a smaller max_context")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._columns = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self._batch = _Batch(params.n_batch)
        self._shares = shares
        self._free = list(range(params.n_seq_max))
        self._rows: list[LlamaRow] = []
        self._kept: list[LlamaRow] = []  # the oldest first

    def begin(self) -> None:
        """Nothing is to be prepared."""

    def new_row(self, tokens: list[int]) -> LlamaRow:
        """A row that has seen the beginning of the tokens, as far as another row has."""
        shared, donor = 0, None
        for row in (*self._rows, *self._kept) if self._shares else ():
            # The last token is always read, because its logits are wanted.
            length = min(_common(row.tokens, tokens), len(tokens) - 1)
            if length > max(shared, _WORTH):
                shared, donor = length, row
        made = LlamaRow(self._sequence(donor), tokens[:shared])
        if donor is not None:
            llama_cpp.llama_memory_seq_cp(self._memory, donor.sequence, made.sequence, 0, shared)
        return made

    def read(self, row: LlamaRow, tokens: list[int]) -> NDArray[np.float32]:
        """The logits after some more tokens of a row that has not joined."""
        positions = range(row.length, row.length + len(tokens))
        self._batch.fill(tokens, positions, [row.sequence] * len(tokens), only_last=True)
        self._decode()
        row.tokens += tokens
        last: NDArray[np.float32] = self._logits(1)[0]
        return last

    def join(self, row: LlamaRow) -> None:
        """Let a row that was read take part in the steps, behind all others."""
        self._rows.append(row)

    def drop(self, row: LlamaRow) -> None:
        """Forget a row that has not joined, but keep its cells for a while."""
        self._keep(row)

    def leave(self, gone: set[int]) -> None:
        """Forget the rows at these places, but keep their cells for a while."""
        for place in sorted(gone):
            self._keep(self._rows[place])
        self._rows = [row for place, row in enumerate(self._rows) if place not in gone]

    def step(self, tokens: list[int]) -> NDArray[np.float32]:
        """The logits after one more token of each row."""
        self._batch.fill(
            tokens, [row.length for row in self._rows], [row.sequence for row in self._rows], only_last=False
        )
        self._decode()
        for row, token in zip(self._rows, tokens, strict=True):
            row.tokens.append(token)
        return self._logits(len(tokens))

    def clear(self) -> None:
        """Forget all rows."""
        llama_cpp.llama_memory_clear(self._memory, True)
        self._free = list(range(llama_cpp.llama_n_seq_max(self._context)))
        self._rows, self._kept = [], []

    def close(self) -> None:
        """Let go of the context."""
        if self._context:
            self._batch.close()
            llama_cpp.llama_free(self._context)
            self._context = None

    def _decode(self) -> None:
        """Run the batch; where no cells are free, those of ended rows are given up one by one."""
        while code := llama_cpp.llama_decode(self._context, self._batch.raw):
            if code != _FULL:
                raise ModelError(f"llama.cpp fails with code {code}", "", "load the model again")
            if not self._kept:
                raise NoRoomError
            self._release(self._kept.pop(0))

    def _logits(self, count: int) -> NDArray[np.float32]:
        """The logits of the last batch, which the next one overwrites."""
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self._context), shape=(count, self._columns))

    def _keep(self, row: LlamaRow) -> None:
        if not self._shares:
            self._release(row)
            return
        self._kept.append(row)
        if len(self._kept) > _KEPT:
            self._release(self._kept.pop(0))

    def _release(self, row: LlamaRow) -> None:
        llama_cpp.llama_memory_seq_rm(self._memory, row.sequence, -1, -1)
        self._free.append(row.sequence)

    def _sequence(self, donor: LlamaRow | None) -> int:
        """A sequence that is free, if need be that of the oldest ended row."""
        if not self._free:
            self._release(self._kept.pop(1 if self._kept[0] is donor else 0))
        return self._free.pop()


class _Batch:
    """The tokens of one call of llama.cpp."""

    def __init__(self, size: int) -> None:
        self.raw = llama_cpp.llama_batch_init(size, 0, 1)
        self._tokens, self._positions, self._logits = (
            np.ctypeslib.as_array(array, shape=(size,)) for array in (self.raw.token, self.raw.pos, self.raw.logits)
        )
        # Each token has an array of one sequence; they are written where the pointers lead.
        places = (self.raw.seq_id[place] for place in range(size))
        self._sequences = [ctypes.cast(place, ctypes.POINTER(ctypes.c_int32)) for place in places]
        np.ctypeslib.as_array(self.raw.n_seq_id, shape=(size,))[:] = 1

    def fill(
        self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int], *, only_last: bool
    ) -> None:
        """Take these tokens; logits are wanted after each of them, or after the last one only."""
        count = self.raw.n_tokens = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        self._logits[:count] = 0 if only_last else 1
        self._logits[count - 1] = 1
        for pointer, sequence in zip(self._sequences, sequences, strict=False):
            pointer[0] = sequence

    def close(self) -> None:
        """Let go of the memory."""
        llama_cpp.llama_batch_free(self.raw)


def _common(one: list[int], other: list[int]) -> int:
    """How many tokens two lists begin with alike."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(place for place in range(shorter) if one[place] != other[place])
