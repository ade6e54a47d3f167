"""Many generations through one model: a thread reads prompts and takes steps, streams are fed as tokens come.

Between any two steps new requests join and finished or abandoned ones leave. A long prompt is read in pieces, so that
those who are already talking do not wait for it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
import torch

from dovetail.engine import Matcher, Vocabulary, fill_masks
from dovetail.errors import ModelError
from dovetail.integrations.transformers import apply_mask
from dovetail.models.drawing import Drawn, draw
from dovetail.models.model import Finish, Sampling, Step
from dovetail.models.rows import Rows
from dovetail.models.stops import StopTexts
from dovetail.models.voice import Talker

_PIECE = 512  # tokens of a prompt that are read between two steps
# Threads wait for each other longer than they work on a small model: on two busy cores a tiny one took 16 ms for a
# token with two threads, and 1.3 ms with one.
_SMALL = 50_000_000  # parameters

Item = Step | Exception | None


class Job:
    """One request on its way through the model, and the way back of its steps."""

    def __init__(
        self, prompt: list[int], matcher: Matcher | None, sampling: Sampling, limit: int, closer: Talker | None
    ) -> None:
        self.prompt = prompt
        self.matcher = matcher
        self.sampling = sampling
        self.limit = limit
        self.closer = closer
        self.stops = StopTexts(sampling.stop)
        self.random = np.random.default_rng(None if sampling.seed is None else abs(sampling.seed))
        self.made = 0
        self.last = -1
        self.abandoned = False
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Item] = asyncio.Queue()

    def send(self, item: Item) -> None:
        """From the model's thread to the stream; None ends it."""
        if not self.abandoned:
            try:
                self._loop.call_soon_threadsafe(self._items.put_nowait, item)
            except RuntimeError:  # the stream's event loop is closed: nobody listens
                self.abandoned = True

    async def steps(self) -> AsyncGenerator[Step, None]:
        """The steps as they come; leaving early abandons the request."""
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.abandoned = True

    @property
    def is_closing(self) -> bool:
        """Whether it has talked for long enough."""
        soft = self.sampling.soft_limit
        # Where the context is smaller than the request hopes, its last quarter is kept for the end all the same.
        return self.closer is not None and soft is not None and self.made >= min(soft, self.limit * 3 // 4)


class Batcher:
    """Runs a model in a thread of its own for all who ask."""

    def __init__(self, model: Any, vocabulary: Vocabulary, max_rows: int) -> None:
        self._rows = Rows(model)
        self._is_small = model.device.type == "cpu" and model.num_parameters() < _SMALL
        self._vocabulary = vocabulary
        self._tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        self._max_rows = max_rows
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._talking: list[Job] = []
        self._reading: Any = None  # the row whose prompt is being read
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, job: Job) -> None:
        """Let a request join as soon as there is room for it."""
        with self._lock:
            if self._closed:
                raise ModelError("the model was closed", "", "load it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dovetail-model", daemon=True)
                self._thread.start()
            self._inbox.put(job)

    def close(self) -> None:
        """End the thread; requests under way end with an error."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._inbox.put(None)
            thread.join()

    def _run(self) -> None:
        if self._is_small:
            torch.set_num_threads(1)
        while self._receive():
            try:
                self._read_some()
                self._step()
            except Exception as error:
                self._fail(error)
        self._fail(ModelError("the model was closed", "", "load it again"))

    def _receive(self) -> bool:
        """Take in new requests, waiting where there is nothing else to do; False when it is time to end."""
        while True:
            idle = not self._talking and not self._waiting
            try:
                job = self._inbox.get(block=idle)
            except queue.Empty:
                return True
            if job is None:
                return False
            self._waiting.append(job)

    def _fail(self, error: Exception) -> None:
        """Tell everybody, and begin anew: one broken step leaves caches that nobody can trust."""
        for job in (*self._talking, *self._waiting):
            job.send(error)
        self._rows.clear()
        self._talking, self._reading = [], None
        self._waiting.clear()

    def _read_some(self) -> None:
        """Read a piece of the first prompt in the queue; at its end the request joins those that talk."""
        while self._waiting and self._waiting[0].abandoned:
            self._waiting.popleft()
            self._reading = None
        if not self._waiting or len(self._talking) >= self._max_rows:
            return
        job = self._waiting[0]
        row = self._reading = self._reading or self._rows.new_row()
        logits = self._rows.read(row, job.prompt[row.length : row.length + _PIECE])
        if row.length < len(job.prompt):
            return
        self._waiting.popleft()
        self._reading = None
        self._rows.join(row)
        self._talking.append(job)
        self._draw([job], logits.unsqueeze(0), len(self._talking) - 1)

    def _step(self) -> None:
        self._leave({place for place, job in enumerate(self._talking) if job.abandoned})
        if self._talking:
            logits = self._rows.step([job.last for job in self._talking])
            self._draw(list(self._talking), logits, 0)

    def _leave(self, gone: set[int]) -> None:
        self._rows.leave(gone)
        self._talking = [job for place, job in enumerate(self._talking) if place not in gone]

    def _draw(self, jobs: list[Job], logits: torch.Tensor, first: int) -> None:
        """Draw the next token of each of these jobs, which stand in the rows from `first` on."""
        masked = self._masked(jobs, logits)
        drawn = draw(masked, [job.sampling for job in jobs], [job.random.random() for job in jobs])
        gone = {first + place for place, job in enumerate(jobs) if self._advance(job, drawn[place])}
        self._leave(gone)

    def _masked(self, jobs: list[Job], logits: torch.Tensor) -> torch.Tensor:
        mask = np.full((len(jobs), self._vocabulary.mask_words), -1, dtype=np.int32)
        bound = [(row, job) for row, job in enumerate(jobs) if job.matcher is not None]
        if bound:
            part = np.zeros((len(bound), self._vocabulary.mask_words), dtype=np.int32)
            fill_masks([job.matcher for _, job in bound if job.matcher is not None], part)
            mask[[row for row, _ in bound]] = part
        for row, job in bound:
            if job.is_closing:
                mask[row] = self._way_out(job, mask[row])
        return apply_mask(mask, logits)

    def _way_out(self, job: Job, mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A mask with the one token that leads to the end."""
        assert job.matcher is not None
        assert job.closer is not None
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=self._vocabulary.size))
        chances = job.closer.chances(job.matcher, allowed, closing=True)
        token = int(job.random.choice(allowed, p=chances))
        one = np.zeros_like(mask)
        one[token // 32] = np.uint32(1 << token % 32).astype(np.int32)
        return one

    def _advance(self, job: Job, drawn: Drawn) -> bool:
        """Pass a step on; whether it was the last one of its request."""
        job.last, job.made = drawn.token, job.made + 1
        data, over = self._accept(job, drawn.token)
        if job.closer is not None:
            job.closer.say(drawn.token, data)
        ready = job.stops.feed(data)
        finish: Finish | None = "stop" if over or job.stops.found else "length" if job.made >= job.limit else None
        if finish and not job.stops.found:
            ready += job.stops.flush()
        job.send(Step(drawn.token, ready, drawn.logprob, drawn.top, finish, job.stops.found))
        if finish:
            job.send(None)
        return finish is not None

    def _accept(self, job: Job, token: int) -> tuple[bytes, bool]:
        """The bytes that a token adds to the output, and whether it ends it."""
        stops = token in self._vocabulary.stop_token_ids
        if job.matcher is None:
            return (b"" if stops else self._tokens[token]), stops
        before = job.matcher.position
        if not job.matcher.accept(token):
            raise AssertionError(f"the mask allowed token {token}, which the matcher refuses")
        data = self._tokens[token] if job.matcher.position > before else b""
        return data, job.matcher.is_finished or (stops and job.matcher.is_complete)
