"""Random and damaged requests to a running server.

    python tests/fuzz/serve.py --requests 10000 --seed 0    so many requests
    python tests/fuzz/serve.py --request 4711               one request again, after a finding

A finding is an answer with a 5xx status, an answer that does not come within 30 seconds, a refusal without a message, a
whole answer that is no JSON, or a stream that does not end as its interface ends.
"""

from __future__ import annotations

import argparse
import copy
import http.client
import json
import logging
import random
import socket
from typing import Any, NamedTuple

from dovetail import dialects
from dovetail.serving import Limits, Settings, create_app, in_background, speakers

PATIENCE_S = 30
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
FUNCTION = {"name": "f", "description": "x", "parameters": SCHEMA, "strict": True}
USER: list[Any] = [{"role": "user", "content": "Well?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "x"}'}}
HISTORY: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Well?"}]},
    {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
]
CHAT: dict[str, Any] = {
    "messages": HISTORY,
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_tokens": 30,
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["zebra"],
    "n": 2,
    "logprobs": True,
    "top_logprobs": 2,
    "stream": True,
    "stream_options": {"include_usage": True},
    "reasoning_effort": "low",
    "chat_template_kwargs": {"enable_thinking": True},
}
RESPONSES: dict[str, Any] = {
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Well?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
    ],
    "instructions": "Be brief.",
    "tools": [{"type": "function", **FUNCTION}, {"type": "web_search"}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}},
    "reasoning": {"effort": "high", "summary": "auto"},
    "max_output_tokens": 30,
    "include": ["message.output_text.logprobs"],
    "stream": True,
}
MESSAGES: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Well?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "x"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]},
    ],
    "tools": [{"name": "f", "description": "x", "input_schema": SCHEMA}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    "stop_sequences": ["zebra"],
    "max_tokens": 30,
    "stream": True,
}
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
GOOD = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": MESSAGES,
    "/playground/format": CHAT,
    "/playground/stream": CHAT,
    "/playground/check": {"template": TEMPLATE},
}
ENDS = {
    "/v1/chat/completions": "data: [DONE]",
    "/v1/messages": "event: message_stop",
    "/v1/responses": "event: response.",
    "/playground/stream": "finish_reason",
}
RARE = ("/playground/format", "/playground/stream", "/playground/check")  # an analysis takes its time
# What one interface knows another may be sent, too.
EXTRA: dict[str, Any] = {
    "regex": "[a-z]+",
    "ebnf": 'root ::= "a" | "b" root',
    "structured_outputs": {"choice": ["yes", "no"]},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "continue_final_message": True,
    "include_reasoning": False,
    "separate_reasoning": False,
    "extra_body": {"regex": "a"},
    "logit_bias": {"5": -100},
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.2,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
}
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 1e308, -1e308, 2**31, 2**63, 2**64, 10**40, 0.5, "", " ", "a", "x" * 5000, "\x00",
    "\ud800", "\u202e", "🦊", "<think>", "</think>", "<tool_call>", "<|im_start|>assistant\n", "<|im_end|>", "null",
    "none", "auto", "required", "text", "json_object", "json_schema", "structural_tag", "function", "user", "assistant",
    [], {}, [[]], [{}], [None], [""], {"type": "object"}, {"type": "any_text"}, {"type": "text"}, {"": {}}, True, False,
    {"type": "structural_tag", "format": {"type": "any_text"}}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"enum": []},
    {"type": "string", "pattern": "(a*)*b"}, {"pattern": "(?=a)b"}, {"minLength": 10**9, "type": "string"}, {"not": {}},
    {"type": "array", "minItems": 10**6}, {"const": "x" * 2000}, {"anyOf": [{"type": "integer"}] * 50},
    "(((((((a*)*)*)*)*)*)*)*",
    "a{1000}{1000}", "[", "root ::= root", "root ::=", "{" * 300, {"properties": {f"p{i}": {} for i in range(60)}},
]  # fmt: skip


class Sent(NamedTuple):
    """A request as it goes over the wire."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


class Maker:
    """Requests that are mostly good, and wrong in one or two places."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> Sent:
        r = self.random
        path = r.choice(RARE if r.random() < 0.03 else [path for path in GOOD if path not in RARE])
        body = copy.deepcopy(GOOD[path])
        if path in RARE and r.random() < 0.5:
            body["template"] = self.damaged(TEMPLATE.encode()).decode("utf-8", "replace")
        body["model"] = r.choice(["speaker", f"speaker/{r.choice(dialects.names())}", "", "parrot"] + ["speaker"] * 3)
        body["stream"] = r.random() < 0.5
        for key in r.sample(list(body), r.randrange(len(body))):
            if key not in ("messages", "input") or r.random() < 0.05:
                del body[key]
        for key in r.sample(list(EXTRA), r.choice([0, 0, 0, 1, 1, 2])):
            body[key] = copy.deepcopy(EXTRA[key])
        for _ in range(r.choice([0, 0, 1, 1, 2, 4])):
            self.spoil(body)
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        method = "POST"
        match r.randrange(20):
            case 0:
                data = self.damaged(data)
            case 1:
                path = r.choice(
                    ["/", "/v1", "/v1/models", "/v1/models/x", "/health", "/metrics", "/%00", "/playground/x"]
                )
                method = r.choice(["GET", "POST", "DELETE", "OPTIONS", "HEAD"])
            case 2:
                headers |= {
                    r.choice(["authorization", "x-api-key", "content-type", "accept"]): r.choice(
                        ["", "Bearer x", "é", "*"]
                    )
                }
            case 3:
                data = b"[" * r.choice([10, 100, 100_000]) + data
        return Sent(method, path, data, headers)

    def spoil(self, value: Any) -> None:
        """Change something somewhere inside."""
        r = self.random
        while True:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            if not keys:
                return
            key = r.choice(keys)
            inner = value[key]
            if isinstance(inner, dict | list) and inner and r.random() < 0.7:
                value = inner
                continue
            match r.randrange(4):
                case 0:
                    del value[key]
                case 1 if isinstance(value, list):
                    value.extend([copy.deepcopy(inner)] * r.choice([1, 3, 30]))
                case 2:
                    value[key] = [copy.deepcopy(inner)]
                case _:
                    value[key] = copy.deepcopy(r.choice(ODD))
            return

    def damaged(self, data: bytes) -> bytes:
        at = self.random.randrange(len(data) + 1)
        return self.random.choice(
            [data[:at], data[:at] + self.random.randbytes(3) + data[at:], self.random.randbytes(50), b""]
        )


def check(host: str, port: int, sent: Sent) -> int:
    """Send a request, and find nothing wrong with its answer; the status."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        headers = {key: value.encode("utf-8").decode("latin-1") for key, value in sent.headers.items()}
        connection.request(sent.method, sent.path, sent.body, headers)
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    status = response.status
    assert status < 500, f"{status}: {data[:300]!r}"
    if sent.method == "HEAD" or sent.path not in GOOD:
        return status
    if status >= 400:
        assert json.loads(data)["error"]["message"]
    elif response.headers["content-type"].startswith("text/event-stream"):
        text = data.decode()
        assert ENDS[sent.path] in text.rstrip().rpartition("\n\n")[2], text[-300:]
        for line in text.splitlines():
            wire = json.loads(line[6:]) if line.startswith("data: {") else {}
            assert "error" not in (*wire, wire.get("type")), line
    else:
        assert isinstance(json.loads(data), dict)
    return status


def garbage(host: str, port: int, seed: int) -> None:
    """Bytes that are no HTTP at all, and a connection that is closed in the middle."""
    r = random.Random(seed)
    with socket.create_connection((host, port), timeout=PATIENCE_S) as connection:
        connection.sendall(
            r.choice(
                [
                    r.randbytes(100),
                    b"POST /v1/messages HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
                    b"GET / HTTP/9.9\r\n\r\n",
                ]
            )
        )


def play(url: str, seed: int) -> int:
    host, port = url.removeprefix("http://").split(":")
    sent = Maker(seed).request()
    try:
        if seed % 50 == 0:
            garbage(host, int(port), seed)
        return check(host, int(port), sent)
    except BaseException:
        print(f"finding in request {seed}: {sent.method} {sent.path} {sent.body[:2000]!r}")
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--request", type=int)
    options = parser.parse_args()
    logging.disable(logging.INFO)
    settings = Settings(limits=Limits(max_tokens=60, answer_timeout_s=10))
    with in_background(create_app(speakers(), settings)) as url:
        seeds = (
            [options.request] if options.request is not None else range(options.seed, options.seed + options.requests)
        )
        statuses = [play(url, seed) for seed in seeds]
    told = ", ".join(f"{statuses.count(status)} x {status}" for status in sorted(set(statuses)))
    print(f"{len(statuses)} requests, no finding: {told}")


if __name__ == "__main__":
    main()
