"""llama.cpp's own server takes our grammars, and behind the gateway its answers are what clients ask for."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from dovetail import dialects
from dovetail.grammar import export
from dovetail.models.engines import connect
from dovetail.serving.models import engines
from tests.engines.cases import MORE, TOUR, Case
from tests.serving.asking import INTERFACES, check_answers, serving

pytestmark = pytest.mark.real_model

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "engines" / "smollm2_tools.jinja"

# Asked of vLLM, and not of this server: Lark, other words of its errors, the end ignored. And keys that come twice,
# which no grammar can hold.
OTHER = ("Lark", "the end is ignored", "patternProperties", "neither EBNF")
CASES = [case for case in (*TOUR, *MORE) if not case.refused and not case.name.startswith(OTHER)]


@pytest.fixture(scope="module")
def llama(model_file: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(HERE / "llama_server.py"), str(model_file), str(port), "4"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    yield process.stdout.readline().decode().strip()
    process.communicate()


@contextmanager
def gateway(llama: str, template: Path | None = None, dialect: str | None = None) -> Iterator[str]:
    with serving(engines(connect([f"llama={llama}"], template, dialect=dialect, name="m"))) as url:
        yield url


@pytest.fixture(scope="module")
def client(llama: str) -> Iterator[openai.OpenAI]:
    with gateway(llama, TEMPLATE) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_is_answered_as_asked(client: openai.OpenAI, case: Case) -> None:
    case.run(client)


@pytest.mark.parametrize(("dialect", "interface"), [*zip(("qwen_3", "llama", "hermes"), INTERFACES, strict=True)])
def test_clients_get_what_they_ask_for_in_any_dialect(llama: str, dialect: str, interface: str) -> None:
    with gateway(llama, dialect=dialect) as url:
        check_answers(url, interface, max_tokens=300)


def fields(count: int) -> dict[str, Any]:
    numbers = {"type": "array", "items": {"type": "number"}}
    kinds = [{"type": "string"}, {"type": "integer"}, {"enum": ["a", "b"]}, numbers]
    properties = {f"field_{index}": kinds[index % len(kinds)] for index in range(count)}
    required = list(properties)[: count // 2]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def complete(llama: str, **body: Any) -> httpx2.Response:
    return httpx2.post(f"{llama}/completion", json={"prompt": "So", "n_predict": 1, **body}, timeout=60)


@pytest.mark.parametrize("dialect", dialects.names())
def test_llama_takes_the_grammar_of_any_turn(llama: str, dialect: str) -> None:
    found = dialects.get(dialect)
    tools = [{"type": "function", "function": {"name": "f", "parameters": fields(8)}}]
    requests: list[dict[str, Any]] = [
        {"tools": tools, "tool_choice": "required"},
        {"response_format": {"type": "json_object"}},
    ]
    for asked in requests:
        made = export.gbnf(found.format(reasoning="disabled", tidy=True, **asked))
        answer = complete(llama, grammar=made.grammar, preserved_tokens=made.preserved_tokens)
        assert answer.status_code == 200, answer.text


def test_a_turn_with_a_tool_of_40_fields_is_small_and_taken(llama: str) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": fields(40)}}]
    turn = dialects.get("qwen_3").format(tools, tool_choice="required", reasoning=False, tidy=True)
    made = export.gbnf(turn)
    assert len(made.grammar) < 10_000
    assert complete(llama, grammar=made.grammar).status_code == 200
    free = dialects.get("qwen_3").format(tools, tool_choice="auto", reasoning=False, tidy=True)
    assert len(export.gbnf(free, lazy=True).grammar) < 10_000


def test_a_lazy_grammar_holds_from_its_trigger_on(llama: str) -> None:
    digits = {"type": "tag", "begin": " =", "content": {"type": "regex", "pattern": "[0-9]{4}"}, "end": "!"}
    tag = {"type": "triggered_tags", "triggers": [" ="], "tags": [digits], "stop_after_first": True}
    made = export.gbnf(tag, lazy=True)
    triggers = [{"type": 1, "value": text} for text in made.triggers]
    ids = httpx2.post(f"{llama}/tokenize", json={"content": " ="}, timeout=60).json()["tokens"]
    held: dict[str, Any] = {"grammar": made.grammar, "grammar_lazy": True, "grammar_triggers": triggers}
    held["preserved_tokens"] = list(made.preserved_tokens)
    asked: dict[str, Any] = {"prompt": "x = 1; y", "n_predict": 12, "temperature": 0, "logit_bias": [[ids[0], 100]]}
    assert " =" * 3 in complete(llama, **asked).json()["content"]
    said = complete(llama, **asked, **held).json()["content"]
    assert (said[:2], said[2:6].isdigit(), said[6:]) == (" =", True, "!")
