"""The common face of local models, met by the speaker: steps that say what the format allows, stop texts, limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import dovetail as dt
from dovetail.models import Sampling, Speaker, Step
from dovetail.models.chat import render_plainly
from tests.models.stepping import FORMAT, PERSON, data


def steps(speaker: Speaker, constraint: Any = None, *, prefix: str = "", **sampling: Any) -> list[Step]:
    async def collect() -> list[Step]:
        return [step async for step in speaker.generate("hi", constraint, Sampling(**sampling), prefix=prefix)]

    return asyncio.run(collect())


@pytest.mark.parametrize("kind", ["format", "grammar", "matcher"])
def test_a_constraint_may_be_a_format_a_grammar_or_a_matcher(kind: str) -> None:
    speaker = Speaker()
    grammar = dt.compile(FORMAT, speaker.vocabulary)
    constraint = {"format": FORMAT, "grammar": grammar, "matcher": grammar.matcher()}[kind]
    for seed in range(20):
        said = steps(speaker, constraint, seed=seed)
        assert {"name", "age"} == set(json.loads(data(said)))
        assert ["stop"] == [step.finish for step in said if step.finish]
        assert said[-1].finish


def test_without_a_constraint_it_says_words() -> None:
    text = b" ".join(data(steps(Speaker(), seed=seed)) for seed in range(30)).decode()
    words = text.split()
    assert len(words) > 60
    assert sum(word.strip(",.:").isalpha() for word in words) > 0.8 * len(words)


def test_many_generations_at_once_do_not_mix() -> None:
    speaker = Speaker()
    alone = [data(steps(speaker, FORMAT, seed=seed)) for seed in range(30)]

    async def together() -> list[bytes]:
        async def one(seed: int) -> bytes:
            return b"".join([s.data async for s in speaker.generate("", FORMAT, Sampling(seed=seed))])

        return await asyncio.gather(*map(one, range(30)))

    assert alone == asyncio.run(together())


def test_temperature_zero_repeats_itself() -> None:
    speaker = Speaker()
    assert steps(speaker, FORMAT, temperature=0) == steps(speaker, FORMAT, temperature=0)
    assert steps(speaker, FORMAT) != steps(speaker, FORMAT)


def test_the_limit_cuts_off_with_the_reason_length() -> None:
    said = steps(Speaker(), FORMAT, max_tokens=2)
    assert [None, "length"] == [step.finish for step in said]


def test_an_answer_goes_on_behind_its_prefix() -> None:
    said = data(steps(Speaker(), FORMAT, prefix='{"name": "Ada'))
    assert b'"' in said
    assert json.loads(b'{"name": "Ada' + said)["name"].startswith("Ada")
    with pytest.raises(dt.ModelError, match="the beginning of the answer"):
        steps(Speaker(), FORMAT, prefix="Ada")


def test_logprobs_are_those_of_the_draw() -> None:
    for step in steps(Speaker(), FORMAT, logprobs=3):
        assert step.logprob <= 0
        assert len(step.top) <= 3
        assert sorted((chance for _, chance in step.top), reverse=True) == [chance for _, chance in step.top]


def test_a_stop_text_ends_the_output_and_is_not_part_of_it() -> None:
    said = steps(Speaker(), {"type": "const_string", "value": "one two three"}, stop=("o th", "never"))
    assert (b"one tw", "stop", "o th") == (data(said), said[-1].finish, said[-1].stopped_by)


@pytest.mark.parametrize(
    "sampling",
    [{"temperature": -1}, {"top_p": 0}, {"max_tokens": 0}, {"stop": ("",)}, {"stop": "ab"}, {"logprobs": -1}],
)
def test_senseless_sampling_is_refused_by_its_path(sampling: dict[str, Any]) -> None:
    with pytest.raises(dt.ModelError) as error:
        Sampling(**sampling)
    assert "/" + next(iter(sampling)) == error.value.path


# Chats.

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": PERSON}}]
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": '{"a": 1}'}}]},
    {"role": "tool", "tool_call_id": "c", "content": "Ada"},
]


@pytest.mark.parametrize("reasoning", [True, False])
@pytest.mark.parametrize("name", dt.dialects.names())
def test_a_chat_is_rendered_and_answered_in_every_dialect(name: str, reasoning: bool) -> None:
    speaker = Speaker(dialect=name)
    prompt = speaker.render(CHAT, TOOLS, reasoning=reasoning)
    assert all(text in prompt.text for text in ("Be brief.", "Who?", "look", "Ada"))
    fmt = speaker.dialect.format(TOOLS, reasoning=reasoning)
    messages = []
    for seed in range(8):
        said = steps(speaker, fmt, seed=seed)
        assert "stop" == said[-1].finish
        messages.append(speaker.dialect.parse(data(said), TOOLS, prompt.text))
    assert not any(message.diagnostics for message in messages)
    assert any(message.content for message in messages)
    reasons = reasoning and speaker.dialect.reasoning is not None
    # Where blocks come in any order, reasoning may be left out.
    assert any(message.reasoning for message in messages) == reasons or (reasons and speaker.dialect.turn.between)


@pytest.mark.parametrize("reasoning", [True, False])
@pytest.mark.parametrize("name", dt.dialects.names())
def test_an_answer_begun_is_gone_on_with_in_every_dialect(name: str, reasoning: bool) -> None:
    speaker = Speaker(dialect=name)
    last = {"role": "assistant", "content": "Well then"}
    if reasoning and speaker.dialect.reasoning:
        last["reasoning_content"] = "Hm."
    prompt = speaker.render([*CHAT, last], reasoning=reasoning, continue_final=True)
    assert prompt.text.endswith(prompt.prefix)
    said = steps(speaker, speaker.dialect.format(reasoning=reasoning), prefix=prompt.prefix)
    message = speaker.dialect.parse(data(said), prompt=prompt.text, reasoning=reasoning)
    assert message.content.lstrip().startswith("Well then")
    assert message.reasoning == last.get("reasoning_content", "")


def test_a_chat_that_cannot_go_on_is_refused() -> None:
    with pytest.raises(dt.MessageError, match="no answer to go on with"):
        render_plainly(dt.dialects.get("qwen_3"), CHAT, continue_final=True)
    with pytest.raises(dt.MessageError, match="needs a role"):
        render_plainly(dt.dialects.get("qwen_3"), [{"content": "x"}])
