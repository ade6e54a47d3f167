"""What stands before every route: keys, request ids, counts, a line in the log, and errors as answers."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
import traceback
from collections.abc import Iterable, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.serving.errors import Interface, Refusal, RequestError, refusal
from dovetail.serving.metrics import Metrics

log = logging.getLogger("dovetail.serving")

FIGURES = "dovetail.figures"  # where the scope of a request has them
OPEN_PATHS = frozenset(("/", "/health", "/favicon.ico"))


class Figures:
    """What the log has of an answer: its tokens, how fast they came, why it ended, and codes of notes."""

    def __init__(self, prompt_tokens: int, notes: Sequence[str]) -> None:
        self._prompt_tokens = prompt_tokens
        self._notes = notes
        self._tokens = 0
        self._reasons: list[str] = []
        self._began = time.perf_counter()

    def begin(self) -> None:
        """The first piece has come."""
        self._began = time.perf_counter()

    def add(self, tokens: int, reason: str) -> None:
        """A choice has ended."""
        self._tokens += tokens
        self._reasons.append(reason)

    def __str__(self) -> str:
        took_s = max(time.perf_counter() - self._began, 1e-6)
        words = [f" {self._prompt_tokens}+{self._tokens} tokens", f"{self._tokens / took_s:.0f}/s"]
        return " ".join([*words, *dict.fromkeys(self._reasons), *self._notes])


class Guard:
    """Lets requests with a key through, and answers for what goes wrong behind it.

    Neither the log nor the counts hold anything of what a request or an answer says.
    """

    def __init__(self, app: ASGIApp, keys: Iterable[str], metrics: Metrics, routes: Iterable[str]) -> None:
        self._app = app
        self._keys = [_digest(key) for key in keys]
        self._metrics = metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = _Sent(send, f"req_{secrets.token_hex(12)}")
        started = time.perf_counter()
        try:
            headers = Headers(scope=scope)
            _check_origin(headers)
            if scope["path"] not in OPEN_PATHS:
                self._check_key(headers)
            await self._app(scope, receive, sent)
        except ClientDisconnect:
            sent.status = sent.status or 499
            self._metrics.cancelled.add()
        except Exception as error:
            await self._answer(error, scope, receive, sent)
        finally:
            path = scope["path"] if scope["path"] in self._routes else "other"
            self._metrics.requests.add(route=path, status=str(sent.status))
            took_ms = (time.perf_counter() - started) * 1000
            usage = scope.get(FIGURES, "")
            log.info("%s %s %s %.1f ms %s%s", scope["method"][:10], path, sent.status, took_ms, sent.request_id, usage)

    def _check_key(self, headers: Headers) -> None:
        """Compare with every key, and each in the same time whatever was given."""
        if not self._keys:
            return
        bearer = headers.get("authorization", "")
        given = headers.get("x-api-key") or (bearer[7:] if bearer[:7].lower() == "bearer " else "")
        digest = _digest(given)
        if sum(hmac.compare_digest(digest, key) for key in self._keys) == 0:
            fix = "send `Authorization: Bearer KEY` or `x-api-key: KEY`"
            raise RequestError("no valid key was given", "", fix, status=401, code="invalid_api_key")

    async def _answer(self, error: Exception, scope: Scope, receive: Receive, sent: _Sent) -> None:
        refused = _http(error) if isinstance(error, HTTPException) else refusal(error)
        if refused.status >= 500:
            log_failure(error, sent.request_id)
        if sent.status:
            return  # the answer had begun; nothing can take its status back
        interface: Interface = "anthropic" if scope["path"].startswith("/v1/messages") else "openai"
        headers = {"retry-after": "1"} if refused.status in (429, 503) else {}
        if refused.status in (408, 413):
            headers["connection"] = "close"  # the rest of the body is not wanted
        response = JSONResponse(refused.body(interface, sent.request_id), refused.status, headers)
        await response(scope, receive, sent)


def _check_origin(headers: Headers) -> None:
    """Refuse web pages of other sites: a browser lets them send requests to a server on its own machine."""
    origin = headers.get("origin")
    if origin is not None and origin.rpartition("//")[2] != headers.get("host"):
        fix = "open the page that this server has at /, or use a client that is no web page"
        raise RequestError("this is a request of another site", "", fix, status=403, code="foreign_origin")


class _Sent:
    """A `send` that remembers the status and adds the id of the request."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            # OpenAI's clients read the one, Anthropic's the other.
            headers["x-request-id"] = headers["request-id"] = self.request_id
        await self._send(message)


def log_failure(error: BaseException, request_id: str) -> None:
    """Where an error came from, but not what it says: that may quote the request."""
    places = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    log.error("%s in %s\n%s", type(error).__name__, request_id, places)


def _http(error: HTTPException) -> Refusal:
    problems = {404: "there is nothing at this path", 405: "this path does not take this method"}
    status = error.status_code if error.status_code in problems else 400
    return Refusal(status, problems.get(status, "this is no request that can be served"))


def _digest(key: str) -> bytes:
    # Of equal length for keys of any length, so that the comparison tells nothing.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
