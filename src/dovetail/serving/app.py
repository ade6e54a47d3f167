"""The server as an ASGI application: routes, limits, and answers that end when their reader does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dovetail.messages import Wire, to_json
from dovetail.models import Note
from dovetail.serving import playground, replicas, sse
from dovetail.serving.anthropic import read_messages
from dovetail.serving.chat import read_chat
from dovetail.serving.errors import Refusal, RequestError, refusal
from dovetail.serving.fields import parse_body
from dovetail.serving.generation import Job, Limits, Piece, prepare, run
from dovetail.serving.metrics import Metrics
from dovetail.serving.middleware import FIGURES, Figures, Guard, log_failure
from dovetail.serving.models import Models
from dovetail.serving.requests import Ask
from dovetail.serving.responses import read_responses
from dovetail.serving.writers import AnthropicWriter, ChatWriter, ResponsesWriter, Writer

_T = TypeVar("_T")
# What of a request is not held as it was asked; the field `notes` of the answer says where and why.
_NOTES_HEADER = "x-dovetail-notes"
_PREPARING = 4  # threads that render prompts and compile grammars


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server is set up; without keys everybody may use it."""

    api_keys: tuple[str, ...] = ()
    max_requests: int = 512
    limits: Limits = field(default_factory=Limits)
    playground: bool = True


class Server:
    """What the routes share."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self.models = models
        self.settings = settings
        self.metrics = Metrics(lambda: replicas.lines(models.pools))
        self._threads = ThreadPoolExecutor(_PREPARING, "dovetail-prepare")
        self._running = 0

    async def prepare(self, ask: Ask) -> Job:
        """The job of a request, made in a thread: a grammar may take its time."""
        limits = self.settings.limits
        return await self.in_thread(lambda: prepare(ask, self.models.get(ask.model), limits))

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """The result of something that takes a while."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A place among the answers that are being written; a server that is full says so at once."""
        if self._running >= self.settings.max_requests:
            problem = f"the server is writing {self._running} answers already"
            raise RequestError(problem, "", "try again later", status=429, code="too_many_requests")
        self._running += 1
        self.metrics.running.add()
        try:
            yield
        finally:
            self._running -= 1
            self.metrics.running.add(-1)

    def close(self) -> None:
        """Let go of threads and models."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.models.close()


class Answering:
    """A route that answers requests of one interface, whole or as a stream."""

    def __init__(
        self,
        server: Server,
        read: Callable[[dict[str, Any]], Ask],
        writer: Callable[[Ask, str, int, Sequence[Note]], Writer],
    ) -> None:
        self._server = server
        self._read = read
        self._writer = writer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = time.perf_counter()
        with self._server.slot():
            request = Request(scope, receive)
            ask = self._read(parse_body(await read_body(request, self._server.settings.limits)))
            await unless_gone(receive, self._answer(ask, started, scope, receive, send))

    async def _answer(self, ask: Ask, started: float, scope: Scope, receive: Receive, send: Send) -> None:
        job = await self._server.prepare(ask)
        local = job.local
        writer = self._writer(ask, ask.model or local.model.name, len(local.prompt_ids), local.notes)
        codes = tuple(dict.fromkeys(note.code for note in local.notes))
        figures = scope[FIGURES] = Figures(len(local.prompt_ids), codes)
        headers = {_NOTES_HEADER: ", ".join(codes)} if codes else {}
        self._server.metrics.tokens.add(len(job.local.prompt_ids), kind="prompt")
        async with aclosing(self._written(job, writer, started, figures)) as written:
            if ask.stream:
                await send_stream(written, lambda error: sse.encode(writer.failed(error), writer.named), send, headers)
            else:
                async for _ in written:
                    pass
                await Json(writer.whole(), headers=headers)(scope, receive, send)
        self._server.metrics.answer_s.observe(time.perf_counter() - started)

    async def _written(self, job: Job, writer: Writer, started: float, figures: Figures) -> AsyncGenerator[str, None]:
        """The answer as the text of its events, which one who wants it whole may ignore."""
        metrics = self._server.metrics
        before = writer.start()
        async with aclosing(run(job)) as pieces:
            async for piece in pieces:
                begun = time.perf_counter()
                wires = writer.added(piece.choice, piece.delta)
                if piece.turn is not None:
                    wires += writer.ended(piece.choice, piece.turn)
                    self._count(piece)
                    figures.add(piece.turn.counts.completion, piece.turn.finish_reason or "stop")
                if before:
                    figures.begin()
                    metrics.first_s.observe(time.perf_counter() - started)
                    wires, before = before + wires, []
                text = sse.encode(wires, writer.named) if job.ask.stream and wires else ""
                metrics.token_s.observe(time.perf_counter() - begun + piece.spent_s)
                if text:
                    yield text
        yield sse.encode(writer.end(), writer.named) + writer.closing

    def _count(self, piece: Piece) -> None:
        assert piece.turn is not None
        self._server.metrics.tokens.add(piece.turn.counts.completion, kind="completion")
        self._server.metrics.tokens.add(piece.turn.counts.reasoning, kind="reasoning")
        self._server.metrics.finished.add(reason=piece.turn.finish_reason or "stop")


class Playing:
    """A route that shows the playground an answer step by step."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        with self._server.slot():
            body = parse_body(await read_body(Request(scope, receive), self._server.settings.limits))
            await unless_gone(receive, self._answer(body, send))

    async def _answer(self, body: dict[str, Any], send: Send) -> None:
        server = self._server
        job = await server.in_thread(lambda: playground.job(body, server.models, server.settings.limits))
        async with aclosing(playground.steps(job)) as steps, aclosing(playground.encoded(steps)) as written:
            with suppress(TimeoutError):
                async with asyncio.timeout(server.settings.limits.answer_timeout_s):
                    await send_stream(written, _failed, send)


class Json(Response):
    """A JSON object that UTF-8 can always carry."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of the object."""
        return to_json(content).encode()


async def send_stream(
    written: AsyncGenerator[str, None],
    failed: Callable[[Refusal], str],
    send: Send,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Send events as they come; what fails before the first one is answered with a status of its own."""
    text = await anext(written)
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        *((name.encode(), value.encode()) for name, value in more.items()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        async for text in written:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
    except Exception as error:
        refused = refusal(error)
        if refused.status >= 500:
            log_failure(error, "a stream")
        await send({"type": "http.response.body", "body": failed(refused).encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _failed(refused: Refusal) -> str:
    return sse.encode([refused.body("openai")], named=False)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body, unless it is too long or takes too long."""
    too_long = RequestError(
        f"the body is longer than {limits.max_body} bytes", "", "send less", status=413, code="request_too_large"
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.max_body:
        raise too_long
    data = bytearray()
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limits.max_body:
                    raise too_long
    except TimeoutError:
        raise RequestError("the body did not arrive in time", "", "send it at once", status=408) from None
    return bytes(data)


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of the work, which is cancelled when the client goes away; its body has been read."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def create_app(models: Models, settings: Settings | None = None) -> Starlette:
    """An ASGI application that serves these models."""
    settings = settings or Settings()
    server = Server(models, settings)

    async def list_models(_: Request) -> Response:
        return Json({"object": "list", "data": [_model(name) for name in models.names], "has_more": False})

    async def one_model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in models.names:
            raise HTTPException(404)
        return Json(_model(name))

    async def health(_: Request) -> Response:
        if not replicas.is_well(models.pools):
            return JSONResponse({"status": "no replica answers"}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(server.metrics.text(), media_type="text/plain; version=0.0.4")

    async def count_tokens(request: Request) -> Response:
        ask = read_messages(parse_body(await read_body(request, settings.limits)))
        job = await server.prepare(ask)
        return Json({"input_tokens": len(job.local.prompt_ids)})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        async with replicas.watched(models.pools):
            yield
        server.close()

    routes = [
        Route("/v1/chat/completions", Answering(server, read_chat, ChatWriter), methods=["POST"]),
        Route("/v1/responses", Answering(server, read_responses, ResponsesWriter), methods=["POST"]),
        Route("/v1/messages", Answering(server, read_messages, AnthropicWriter), methods=["POST"]),
        Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", one_model),
        Route("/health", health),
        Route("/metrics", metrics),
    ]
    if settings.playground:
        routes += _playground(server)
    guard = Middleware(Guard, keys=settings.api_keys, metrics=server.metrics, routes=[route.path for route in routes])
    return Starlette(routes=routes, middleware=[guard], lifespan=lifespan, exception_handlers={HTTPException: _raise})


def _playground(server: Server) -> list[Route]:
    async def page(_: Request) -> Response:
        text, policy = playground.page(server.models)
        return HTMLResponse(text, headers={"content-security-policy": policy, "cache-control": "no-store"})

    async def described(request: Request) -> Response:
        body = parse_body(await read_body(request, server.settings.limits))
        with server.slot():
            job = await server.in_thread(lambda: playground.job(body, server.models, server.settings.limits))
            return Json(playground.described(job))

    async def checked(request: Request) -> Response:
        body = parse_body(await read_body(request, server.settings.limits))
        with server.slot():
            return Json(await server.in_thread(lambda: playground.checked(body)))

    return [
        Route("/", page),
        Route("/playground/format", described, methods=["POST"]),
        Route("/playground/stream", Playing(server), methods=["POST"]),
        Route("/playground/check", checked, methods=["POST"]),
    ]


async def _raise(_: Request, error: Exception) -> Response:
    """Let the guard answer, which knows the shape that the client reads."""
    raise error


def _model(name: str) -> Wire:
    # Both interfaces at once: their clients ignore what they do not know.
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "dovetail",
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }
