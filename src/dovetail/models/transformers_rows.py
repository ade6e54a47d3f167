"""What Transformers remember of each running generation, so that all of them go through one forward pass.

Rows of a batch have different lengths; the shorter ones are padded on the left, and the mask and the positions tell the
model so. A row joins when its prompt has been read by itself, and leaves when it is done. Models that remember more
than keys and values (linear attention) do not allow padding: their rows go through the model one by one.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

Cache = Any  # of Transformers, which has no types

# Threads wait for each other longer than they work on a small model: on two busy cores a tiny one took 16 ms for a
# token with two threads, and 1.3 ms with one.
_SMALL = 50_000_000  # parameters


class TransformersRow:
    """One generation as the model knows it: its cache while it is alone, and how many tokens it has seen."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.length = 0


class TransformersRows:
    """Running generations in one or several caches."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._device = model.device
        layers = DynamicCache(config=model.config).layers
        self._pads = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
        self._rows: list[TransformersRow] = []
        self._cache: Cache = None

    def begin(self) -> None:
        """Prepare the thread in which the model runs."""
        if self._device.type == "cpu" and self._model.num_parameters() < _SMALL:
            torch.set_num_threads(1)

    def new_row(self, tokens: list[int]) -> TransformersRow:
        """A row that has seen nothing yet."""
        # Without a configuration every layer keeps all keys, so that rows can be padded; masks do the windows.
        return TransformersRow(DynamicCache() if self._pads else DynamicCache(config=self._model.config))

    def read(self, row: TransformersRow, tokens: list[int]) -> torch.Tensor:
        """The logits behind some tokens of a row that has not joined."""
        start, row.length = row.length, row.length + len(tokens)
        ids = torch.tensor([tokens], device=self._device)
        positions = torch.arange(start, row.length, device=self._device).unsqueeze(0)
        return self._forward(ids, positions, row.cache, torch.ones(1, row.length, dtype=torch.long))[0]

    def join(self, row: TransformersRow) -> None:
        """Let a row take part in the steps."""
        self._rows.append(row)
        if not self._pads:
            return
        if len(self._rows) == 1:
            self._cache, row.cache = row.cache, None
            return
        width = max(self._width, row.length)
        for ours, theirs in zip(self._cache.layers, row.cache.layers, strict=True):
            ours.keys = torch.cat([_widen(ours.keys, width), _widen(theirs.keys, width)])
            ours.values = torch.cat([_widen(ours.values, width), _widen(theirs.values, width)])
        row.cache = None

    def drop(self, row: TransformersRow) -> None:
        """Forget a row that has not joined."""
        row.cache = None

    def leave(self, gone: set[int]) -> None:
        """Forget the rows at these places."""
        if not gone:
            return
        kept = [place for place in range(len(self._rows)) if place not in gone]
        self._rows = [self._rows[place] for place in kept]
        if not self._pads:
            return
        if not kept:
            self._cache = None
            return
        longest = max(row.length for row in self._rows)
        index = torch.tensor(kept, device=self._device)
        for layer in self._cache.layers:
            layer.keys = layer.keys[index, ..., -longest:, :]
            layer.values = layer.values[index, ..., -longest:, :]

    def clear(self) -> None:
        """Forget all rows."""
        self._rows, self._cache = [], None

    def close(self) -> None:
        """Let go of memory."""
        self.clear()

    def step(self, tokens: list[int]) -> torch.Tensor:
        """The logits behind one more token of each row."""
        for row in self._rows:
            row.length += 1
        if not self._pads:
            return torch.cat([self._step_alone(row, token) for row, token in zip(self._rows, tokens, strict=True)])
        lengths = torch.tensor([row.length for row in self._rows])
        width = self._width + 1
        mask = (torch.arange(width) >= width - lengths.unsqueeze(1)).long()
        ids = torch.tensor(tokens, device=self._device).unsqueeze(1)
        return self._forward(ids, (lengths - 1).unsqueeze(1).to(self._device), self._cache, mask)

    @property
    def _width(self) -> int:
        return int(self._cache.get_seq_length())

    def _step_alone(self, row: TransformersRow, token: int) -> torch.Tensor:
        position = torch.tensor([[row.length - 1]], device=self._device)
        ids = torch.tensor([[token]], device=self._device)
        return self._forward(ids, position, row.cache, torch.ones(1, row.length, dtype=torch.long))

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor, cache: Cache, mask: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=mask.to(self._device),
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            logits: torch.Tensor = output.logits[:, -1].float()
            return logits


def _widen(states: torch.Tensor, width: int) -> torch.Tensor:
    """Keys or values with nothing on the left, up to `width` positions."""
    return torch.nn.functional.pad(states, (0, 0, width - states.shape[-2], 0))
