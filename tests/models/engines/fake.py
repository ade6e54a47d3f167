"""A server that speaks the wire protocol of an engine, with the speaker in place of a model, and faults to order."""

from __future__ import annotations

import asyncio
import codecs
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dovetail.formats import load_format
from dovetail.models import Sampling, Speaker
from dovetail.serving.server import in_background

PATHS = {"vllm": "/v1/completions", "sglang": "/v1/completions", "llama": "/completion"}


class Fake:
    """A replica; `fault` says what goes wrong with it, and `script` what it says in place of the speaker."""

    def __init__(self, kind: str, dialect: str = "qwen_3", seed: int = 0) -> None:
        self.kind = kind
        self.url = ""
        self.fault = ""
        self.script: list[str] | None = None
        self.refuses: tuple[str, ...] = ()  # constraints that it does not take
        self.context: int | None = None
        self.pace_s = 0.0
        self.keys: set[str] = set()
        self.bodies: list[dict[str, Any]] = []
        self.running = self.ended = self.left = 0
        self._speaker = Speaker(seed, dialect=dialect)

    @property
    def engine(self) -> str:
        return f"{self.kind}={self.url}"

    @contextmanager
    def up(self, port: int = 0) -> Iterator[Fake]:
        routes = [
            Route(PATHS[self.kind], self._generate, methods=["POST"]),
            Route("/tokenize", self._tokenize, methods=["POST"]),
            Route("/health", self._health),
        ]
        with in_background(Starlette(routes=routes), port=port) as self.url:
            yield self

    async def _health(self, _: Request) -> Response:
        return Response(status_code=503 if self.fault == "sick" else 200)

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        tokens = self._speaker.encode(body["content" if self.kind == "llama" else "prompt"])
        told: dict[str, Any] = {"tokens": tokens}
        if self.kind != "llama":
            told |= {"count": len(tokens), "max_model_len": self.context}
        return JSONResponse(told)

    async def _generate(self, request: Request) -> Response:
        body = await request.json()
        self.keys.add(request.headers.get("authorization", ""))
        self.bodies.append(body)
        if self.fault.startswith("status "):
            return JSONResponse({"error": {"message": "told by the engine"}}, int(self.fault.split()[1]))
        given = self.constraint(body)
        if any(key in given for key in self.refuses):
            return JSONResponse({"object": "error", "message": "no such grammar", "code": 400}, 400)
        return StreamingResponse(self._stream(body, given), media_type="text/event-stream")

    def constraint(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.kind == "vllm":
            return dict(body.get("structured_outputs") or {})
        return {key: body[key] for key in ("response_format", "ebnf", "grammar") if key in body}

    async def _stream(self, body: dict[str, Any], given: dict[str, Any]) -> AsyncGenerator[str, None]:
        self.running += 1
        ended = False
        try:
            async for line in self._lines(body, given):
                yield line
            ended = True
        finally:
            self.running -= 1
            self.ended += ended
            self.left += not ended

    async def _lines(self, body: dict[str, Any], given: dict[str, Any]) -> AsyncGenerator[str, None]:
        count, finish = 0, None
        async for piece, finish in self._pieces(body, given):
            count += 1
            if self.fault == "broken" or (self.fault == "breaks" and count == 3):
                raise ConnectionError("as ordered")
            if self.fault == "waits":
                await asyncio.sleep(3600)
            if self.fault.startswith("says "):
                yield self.fault[5:] + "\n\n"
                return
            yield self._event(piece, count, None if self.kind == "llama" else finish)
            if self.pace_s:
                await asyncio.sleep(self.pace_s)
        if self.fault == "endless":
            return
        yield self._closing(count, finish)

    def _event(self, piece: str, count: int, finish: str | None) -> str:
        usage = {"prompt_tokens": 1, "completion_tokens": count}
        if self.kind != "llama":
            choice = {"index": 0, "text": piece, "logprobs": None, "finish_reason": finish, "stop_reason": None}
            return _data({"id": "cmpl-1", "object": "text_completion", "choices": [choice], "usage": usage})
        return _data({"index": 0, "content": piece, "tokens": [], "stop": False, "tokens_predicted": count})

    def _closing(self, count: int, finish: str | None) -> str:
        if self.kind != "llama":
            usage = {"prompt_tokens": 1, "completion_tokens": count}
            return _data({"object": "text_completion", "choices": [], "usage": usage}) + "data: [DONE]\n\n"
        stop = {"stop": "eos", "length": "limit"}[finish or "length"]
        return _data({"index": 0, "content": "", "stop": True, "stop_type": stop, "tokens_predicted": count})

    async def _pieces(
        self, body: dict[str, Any], given: dict[str, Any]
    ) -> AsyncGenerator[tuple[str, str | None], None]:
        """What is said, and why it ends at the end."""
        if self.script is not None:
            for at, piece in enumerate(self.script):
                yield piece, "stop" if at == len(self.script) - 1 else None
            return
        limit = body.get("max_tokens") or body.get("n_predict")
        sampling = Sampling(seed=body.get("seed") or 0, max_tokens=limit, soft_limit=60)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        made = _format(given)
        async for step in self._speaker.generate(body["prompt"], made, sampling):
            yield decoder.decode(step.data, bool(step.finish)), step.finish


def _format(given: dict[str, Any]) -> Any:
    if "response_format" in given:
        return load_format(given["response_format"])
    if "structural_tag" in given:
        return load_format(json.loads(given["structural_tag"]))
    for key in ("grammar", "ebnf"):
        if key in given:
            return load_format({"type": "grammar", "grammar": given[key]})
    return {"type": "any_text", "max_chars": 40}


def _data(event: dict[str, Any]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"


def main() -> None:
    """python -m tests.models.engines.fake KIND PORT: a replica as a process, to be killed."""

    kind, port = sys.argv[1:]
    fake = Fake(kind)
    fake.pace_s = 0.05
    with fake.up(int(port)):
        sys.stdout.write("up\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
