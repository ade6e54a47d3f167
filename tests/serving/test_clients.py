"""The official clients against the running server: every interface, every dialect, whole and as a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jsonschema
import pytest

from dovetail import dialects
from dovetail.errors import DialectError
from dovetail.messages import Message, ToolCall
from dovetail.models import Model
from dovetail.serving import Models
from tests.serving.asking import ANSWER, INTERFACES, TOOLS, Question, Reply, interface_for, serving
from tests.serving.echo import Echo, request

every_dialect = pytest.mark.parametrize("dialect", dialects.names())
every_interface = pytest.mark.parametrize("interface", INTERFACES)

CALLS = (
    ToolCall.of("get_weather", {"city": "Rome"}, "a1b2c3d4e"),
    ToolCall.of("get_time", {"zone": "utc"}, "b1b2c3d4e"),
)


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with serving(Models({name: partial(Echo, name) for name in dialects.names()})) as url:
        yield url


def plain(message: Message) -> tuple[Any, ...]:
    """A message without the ids of its calls, which nobody says twice."""
    return message.content, message.reasoning, [(call.name, call.value, call.complete) for call in message.tool_calls]


MESSAGES = [
    Message("Hello, <b>wörld</b>!"),
    Message("So it is.", "Let me see."),
    Message("", "Hm.", CALLS[:1]),
    Message("", "", CALLS),
    Message("Both.", "Hm.", CALLS),
]


@every_interface
@every_dialect
def test_what_a_model_says_is_what_a_client_reads(echo: str, dialect: str, interface: str) -> None:
    said = 0
    for message in MESSAGES:
        try:
            dialects.get(dialect).render(message)
        except DialectError:
            continue  # the family has no way to say it
        question = Question(TOOLS, text=request(message), reasoning=bool(message.reasoning))
        for ask in INTERFACES[interface]:
            reply = ask(echo, dialect, question)
            assert plain(message) == plain(reply.message)
            assert ("tool_calls" if message.tool_calls else "stop") == reply.finish
        said += 1
    assert said > 1


@pytest.fixture(scope="module")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Transformers model of random weights for each dialect, made when it is asked for."""
    import torch

    from dovetail.models import tiny
    from dovetail.models.transformers import TransformersModel

    folder = tmp_path_factory.mktemp("tiny")
    torch.set_num_threads(1)  # a forward pass of this size is over before a second thread has woken up

    def make(name: str) -> Model:
        return TransformersModel(tiny.make(folder / name, name), dialect=name, device="cpu")

    with serving(Models({name: partial(make, name) for name in dialects.names()})) as url:
        yield url


def assert_calls_fit(reply: Reply) -> None:
    assert reply.message.tool_calls
    assert reply.finish == "tool_calls"
    ids = [call.id for call in reply.message.tool_calls]
    assert len(ids) == len(set(ids))
    for call in reply.message.tool_calls:
        jsonschema.validate(call.value, TOOLS[call.name])


@every_interface
@every_dialect
def test_a_random_speaker_keeps_to_everything_that_is_asked(url: str, dialect: str, interface: str) -> None:
    assert_keeps_to_what_is_asked(partial(INTERFACES[interface][1], url, f"speaker/{dialect}"))


@every_dialect
def test_a_tiny_model_keeps_to_everything_that_is_asked(tiny_models: str, dialect: str) -> None:
    ask = INTERFACES[interface_for(dialect)][1]
    assert_keeps_to_what_is_asked(partial(ask, tiny_models, dialect), soft_limit=5)


def assert_keeps_to_what_is_asked(put: Callable[[Question], Reply], **always: Any) -> None:
    def ask(**asked: Any) -> Reply:
        return put(Question(**always, **asked))

    text = ask(tools=TOOLS, choice="none", reasoning=False)
    assert ((), "stop", "") == (text.message.tool_calls, text.finish, text.message.reasoning)
    assert_calls_fit(ask(tools=TOOLS, choice="required"))
    named = ask(tools=TOOLS, choice="get_time", reasoning=False)
    assert_calls_fit(named)
    assert {"get_time"} == {call.name for call in named.message.tool_calls}
    alone = ask(tools=TOOLS, choice="required", parallel=False)
    assert_calls_fit(alone)
    assert 1 == len(alone.message.tool_calls)
    jsonschema.validate(json.loads(ask(schema=ANSWER).message.content), ANSWER)
    both = ask(tools=TOOLS, schema=ANSWER, reasoning=True)
    if both.message.tool_calls:
        assert_calls_fit(both)
    else:
        jsonschema.validate(json.loads(both.message.content), ANSWER)
    for cut in (ask(tools=TOOLS, choice="required", max_tokens=9), ask(schema=ANSWER, max_tokens=2)):
        assert "length" == cut.finish
        assert cut.tokens in (2, 9, None)


@every_interface
def test_the_same_seed_says_the_same_whole_and_as_a_stream(url: str, interface: str) -> None:
    whole, stream = INTERFACES[interface]
    for seed in range(5):
        question = Question(TOOLS, "auto", reasoning=True, seed=seed)
        one, other = whole(url, "speaker", question), stream(url, "speaker", question)
        assert (plain(one.message), one.finish, one.tokens) == (plain(other.message), other.finish, other.tokens)
