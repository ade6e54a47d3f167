"""Many generations through one model: a thread reads prompts and takes steps, streams are fed as tokens come.

Between any two steps new requests join and finished or abandoned ones leave. A long prompt is read in pieces, so that
those who are already talking do not wait for it. Where the memory of the model is full, the youngest request is put
aside until another one ends, and then read anew with all that it has said.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Protocol

import numpy as np

from dovetail.engine import Matcher, Vocabulary, fill_masks
from dovetail.errors import ModelError
from dovetail.models.model import Finish, Sampling, Step
from dovetail.models.sampling import Array, Draw, Drawn, apply_mask, draw
from dovetail.models.speaker_policy import Talker
from dovetail.models.stops import StopStrings

PIECE = 512  # tokens of a prompt that are read between two steps

_LONG_WAY = 96  # tokens before the limit from which on it is looked how far the end is
_LOOKS = 4  # once in so many tokens, as a look takes a mask for each token of the way

Item = Step | Exception | None


class NoRoomError(Exception):
    """The memory of the model has no place for the tokens of a step or a prompt; nothing was changed."""


class Row(Protocol):
    """One generation as a backend knows it."""

    @property
    def length(self) -> int:
        """How many of its tokens the model has seen."""


class Rows(Protocol):
    """A backend: what a model remembers of running generations, and its forward passes; used by one thread."""

    def begin(self) -> None:
        """Prepare the thread in which the model runs."""

    def new_row(self, tokens: list[int]) -> Any:
        """A row for these tokens; some of them may be known from another row."""

    def read(self, row: Any, tokens: list[int]) -> Array:
        """The logits after some more tokens of a row that has not joined."""

    def join(self, row: Any) -> None:
        """Let a row that was read take part in the steps, behind all others."""

    def drop(self, row: Any) -> None:
        """Forget a row that has not joined."""

    def leave(self, gone: set[int]) -> None:
        """Forget the rows at these places."""

    def step(self, tokens: list[int]) -> Array:
        """The logits after one more token of each row."""

    def clear(self) -> None:
        """Forget all rows."""

    def close(self) -> None:
        """Let go of memory."""


class Job:
    """One request on its way through the model, and the way back of its steps."""

    def __init__(
        self, prompt: list[int], matcher: Matcher | None, sampling: Sampling, limit: int, closer: Talker | None
    ) -> None:
        self.prompt_length = len(prompt)
        self.matcher = matcher
        self.sampling = sampling
        self.limit = limit
        self.closer = closer
        self.stops = StopStrings(sampling.stop)
        self.random = np.random.default_rng(None if sampling.seed is None else abs(sampling.seed))
        self._way = 0  # about how many tokens lead to its end
        self.led = False  # whether a soft limit has left it only ways to the end
        self.tokens = list(prompt)  # and what was said
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
    def made(self) -> int:
        """How many tokens it has said."""
        return len(self.tokens) - self.prompt_length

    @property
    def is_closing(self) -> bool:
        """Whether it has talked for long enough: up to the soft limit, or until what is left is just the way out."""
        soft, hard = self.sampling.soft_limit, self.sampling.max_tokens
        if self.closer is None or self.matcher is None or soft is None:
            return False
        if self.matcher.is_complete and not self.sampling.ends_text:
            return False
        # Where the context is smaller than the request hopes, its last quarter is kept for the end all the same.
        if self.made >= (soft if self.limit == hard else min(soft, self.limit * 3 // 4)):
            return True
        left = self.limit - self.made
        if left <= _LONG_WAY and self.made % _LOOKS == 0:
            # The model may cut its words into more tokens than the tokenizer does.
            self._way = self.closer.way_length(self.matcher, left) * 3 // 2 + _LOOKS
        return left <= self._way


class Batcher:
    """Runs a model in a thread of its own for all who ask."""

    def __init__(self, rows: Rows, vocabulary: Vocabulary, max_rows: int) -> None:
        self._rows = rows
        self._vocabulary = vocabulary
        self._tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        self._max_rows = max_rows
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._talking: list[Job] = []
        self._reading: Any = None  # the row whose prompt is being read
        self._is_full = False  # nobody joins before somebody has left
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
            if self._closed:
                return
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._inbox.put(None)
            thread.join()
        self._rows.close()

    def _run(self) -> None:
        self._rows.begin()
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
        self._talking, self._reading, self._is_full = [], None, False
        self._waiting.clear()

    def _read_some(self) -> None:
        """Read a piece of the first prompt in the queue; at its end the request joins those that talk."""
        while self._waiting and self._waiting[0].abandoned:
            self._waiting.popleft()
            self._stop_reading()
        if not self._waiting or len(self._talking) >= self._max_rows or (self._is_full and self._talking):
            return
        job = self._waiting[0]
        row = self._reading = self._reading or self._rows.new_row(job.tokens)
        try:
            logits = self._rows.read(row, job.tokens[row.length : row.length + PIECE])
        except NoRoomError:
            if not self._talking:
                raise
            self._stop_reading()
            self._is_full = True
            return
        if row.length < len(job.tokens):
            return
        self._waiting.popleft()
        self._reading = None
        self._rows.join(row)
        self._talking.append(job)
        self._draw([job], logits[None], len(self._talking) - 1)

    def _stop_reading(self) -> None:
        """Forget what was read of a prompt."""
        if self._reading is not None:
            self._rows.drop(self._reading)
            self._reading = None

    def _step(self) -> None:
        self._leave({place for place, job in enumerate(self._talking) if job.abandoned})
        while self._talking:
            try:
                logits = self._rows.step([job.tokens[-1] for job in self._talking])
            except NoRoomError:
                self._make_room()
                continue
            self._draw(list(self._talking), logits, 0)
            return

    def _make_room(self) -> None:
        """Put aside the prompt that is being read, or else the youngest request that talks."""
        if self._reading is None and len(self._talking) == 1:
            raise ModelError("the memory of the model is too small for one answer", "", "ask for fewer max_tokens")
        self._is_full = True
        if self._reading is not None:
            self._stop_reading()
            return
        self._waiting.appendleft(self._talking.pop())
        self._rows.leave({len(self._talking)})

    def _leave(self, gone: set[int]) -> None:
        if gone:
            self._is_full = False
            self._rows.leave(gone)
            self._talking = [job for place, job in enumerate(self._talking) if place not in gone]

    def _draw(self, jobs: list[Job], logits: Array, first: int) -> None:
        """Draw the next token of each of these jobs, which stand in the rows from `first` on."""
        draws = [Draw(job.sampling, job.random.random(), job.tokens, job.prompt_length) for job in jobs]
        drawn = draw(self._masked(jobs, logits), draws)
        self._leave({first + place for place, job in enumerate(jobs) if self._advance(job, drawn[place])})

    def _masked(self, jobs: list[Job], logits: Array) -> Array:
        bound = [(row, job) for row, job in enumerate(jobs) if job.matcher is not None]
        if not bound:
            return logits
        part = np.zeros((len(bound), self._vocabulary.mask_words), dtype=np.int32)
        fill_masks([job.matcher for _, job in bound if job.matcher is not None], part)
        mask = np.full((len(jobs), self._vocabulary.mask_words), -1, dtype=np.int32)
        mask[[row for row, _ in bound]] = part
        for row, job in bound:
            if job.is_closing:
                mask[row] = self._ways_out(job, mask[row])
        return apply_mask(mask, logits)

    def _ways_out(self, job: Job, mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A mask with the tokens that lead to the end."""
        assert job.matcher is not None
        assert job.closer is not None
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=self._vocabulary.size))
        left = job.closer.ways_out(job.matcher, allowed, job.limit - job.made)
        job.led = job.led or len(left) < len(allowed)
        bits = np.zeros(len(mask) * 32, dtype=np.uint8)
        bits[left] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    def _advance(self, job: Job, drawn: Drawn) -> bool:
        """Pass a step on; whether it was the last one of its request."""
        job.tokens.append(drawn.token)
        data, over = self._accept(job, drawn.token)
        over = over or (job.made >= job.limit and self._is_whole(job))
        if job.closer is not None:
            job.closer.say(drawn.token, data)
        ready, stop = job.stops.feed(data), job.stops.matched
        finish: Finish | None = "stop" if over or stop else "length" if job.made >= job.limit else None
        if finish and not stop:
            ready += job.stops.flush()
        job.send(Step(drawn.token, ready, drawn.logprob, drawn.top, finish, stop, bool(finish) and job.led))
        if finish:
            job.send(None)
        return finish is not None

    def _is_whole(self, job: Job) -> bool:
        """Whether nothing but the token that ends it is missing."""
        if job.matcher is None or not job.matcher.is_complete:
            return False
        mask = np.zeros(self._vocabulary.mask_words, dtype=np.int32)
        job.matcher.fill_mask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=self._vocabulary.size))
        return set(allowed.tolist()) <= set(self._vocabulary.stop_token_ids)

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
