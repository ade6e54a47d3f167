"""The scripted servers say to the true clients what their script says."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from tests.agent.servers import Call, Reply, Say, ScriptedServer, Think

REPLY = Reply(Think("Hm, Rome."), Say("One moment: 你好."), Call("look", {"city": "Rome", "n": [1, 2]}))
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def with_openai(server: ScriptedServer) -> tuple[str, str, list[tuple[str, Any]]]:
    client = openai.OpenAI(base_url=server.base_url("openai"), api_key="k", max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": TOOL}}]
    with (
        client,
        client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}], tools=tools) as stream,
    ):
        thoughts = [
            event.chunk.choices[0].delta.model_extra.get("reasoning_content", "")
            for event in stream
            if event.type == "chunk" and event.chunk.choices
        ]
        message = stream.get_final_completion().choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return "".join(thoughts), message.content or "", calls


def with_anthropic(server: ScriptedServer) -> tuple[str, str, list[tuple[str, Any]]]:
    client = anthropic.Anthropic(base_url=server.base_url("anthropic"), api_key="k", max_retries=0)
    tools: Any = [{"name": "look", "input_schema": TOOL}]
    with (
        client,
        client.messages.stream(
            model="m", max_tokens=99, messages=[{"role": "user", "content": "hi"}], tools=tools
        ) as stream,
    ):
        blocks = stream.get_final_message().content
    thoughts = "".join(block.thinking for block in blocks if block.type == "thinking")
    text = "".join(block.text for block in blocks if block.type == "text")
    return thoughts, text, [(block.name, block.input) for block in blocks if block.type == "tool_use"]


def with_gemini(server: ScriptedServer) -> tuple[str, str, list[tuple[str, Any]]]:
    options = genai.types.HttpOptions(base_url=server.base_url("gemini"))
    with genai.Client(api_key="k", http_options=options) as client:
        chunks = list(client.models.generate_content_stream(model="m", contents="hi"))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    thoughts = "".join(part.text for part in parts if part.thought)
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return thoughts, text, [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]


@pytest.mark.parametrize("read", [with_openai, with_anthropic, with_gemini])
def test_the_true_client_reads_what_the_script_says(read: Any) -> None:
    with ScriptedServer([REPLY], key="k") as server:
        said = read(server)
    assert ("Hm, Rome.", "One moment: 你好.", [("look", {"city": "Rome", "n": [1, 2]})]) == said


def test_a_request_that_the_service_would_refuse_is_refused() -> None:
    orphan: Any = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "?"}]
    with ScriptedServer([REPLY]) as server:
        client = openai.OpenAI(base_url=server.base_url("openai"), api_key="k", max_retries=0)
        with client, pytest.raises(openai.BadRequestError, match="must be a response"):
            client.chat.completions.create(model="m", messages=orphan, stream=True)
