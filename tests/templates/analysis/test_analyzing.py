"""What an analysis says of templates that are hard to read."""

from __future__ import annotations

import contextlib

import pytest

import dovetail as dt
from dovetail.templates.analysis import analyze_template

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_a_plain_template_has_turns_and_nothing_else() -> None:
    analysis = analyze_template(CHATML)
    dialect = analysis.dialect
    assert ("<|im_start|>assistant\n", "<|im_end|>") == (dialect.turn.start, dialect.turn.end)
    assert ((), None, False) == (dialect.calls, dialect.reasoning, dialect.content.wrapped)
    assert "<|im_start|>assistant\n" == analysis.generation_prompt
    assert () == analysis.notes


def test_a_template_without_an_assistant_is_refused() -> None:
    with pytest.raises(dt.TemplateError, match="no turn of an assistant"):
        dt.analyze("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}")


def test_a_template_that_is_not_jinja_is_refused() -> None:
    with pytest.raises(dt.TemplateError):
        dt.analyze("{% for m in messages %}")


def test_calls_that_nothing_tells_from_text_are_noted_and_left_out() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}\n"
        "{{ c.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    analysis = analyze_template(source)
    assert () == analysis.dialect.calls
    assert any("no marker" in note for note in analysis.notes)


def test_arguments_that_nothing_tells_apart_are_noted_and_left_out() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<do>"
        "{{ c.function.name }}{% for k, v in c.function.arguments.items() %} {{ k }} {{ v }}{% endfor %}</do>"
        "{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    analysis = analyze_template(source)
    assert () == analysis.dialect.calls
    assert any("arguments from each other" in note for note in analysis.notes)


def test_calls_may_follow_reasoning_with_other_white_space_than_content() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<mull>{{ m.reasoning_content }}</mull>"
        "{{ '\\n\\n' if m.content else '' }}{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<do>"
        "{{ c.function.name }}|{{ c.function.arguments | tojson }}</do>{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    analysis = analyze_template(source)
    assert {"everything", "reasoning and calls"} <= {row.feature for row in analysis.verifications if row.passed}
    assert () == analysis.notes


def test_a_template_that_nothing_reads_is_refused() -> None:
    doubled = CHATML.replace("{{ m.content }}", "{{ m.content }}{{ m.content }}")
    with pytest.raises(dt.TemplateError, match="nothing that the chat template renders is read back"):
        dt.analyze(doubled)


def test_a_template_that_fails_on_tools_is_analyzed_without() -> None:
    analysis = analyze_template("{% if tools %}{{ raise_exception('no tools') }}{% endif %}" + CHATML)
    assert "<|im_start|>assistant\n" == analysis.dialect.turn.start
    assert not analysis.capabilities.tools


def test_tokens_of_the_tokenizer_are_part_of_the_turn() -> None:
    source = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    assert "" == analyze_template(source).dialect.turn.end
    assert "</s>" == analyze_template(source, "<s>", "</s>").dialect.turn.end


def test_ids_that_are_counted_are_told_with_the_name_that_they_share_a_word_with() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<|call|>do."
        "{{ c.function.name }}#{{ loop.index }}<|args|>{{ c.function.arguments | tojson }}<|done|>{% endfor %}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    way = analyze_template(source).dialect.calls[0]
    assert ("do.{name}#{id}", r"\d{1,18}", 1) == (way.id_template, way.id_pattern, way.first_id)
    message = analyze_template(source).dialect.parse("<|call|>do.f#1<|args|>{}<|done|>", prompt="<|assistant|>")
    assert ["do.f#1"] == [call.id for call in message.tool_calls]


@pytest.mark.parametrize("source", ["{{ messages[0].content }}" * 3, "x", "{% raw %}{{ messages }}{% endraw %}"])
def test_what_is_no_chat_template_ends_in_a_typed_error_or_a_dialect(source: str) -> None:
    with contextlib.suppress(dt.DovetailError):
        assert dt.analyze(source).name.startswith("template-")


OPENED = CHATML.replace("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n")


def test_reasoning_that_only_the_prompt_opens_is_closed_by_the_marker_of_its_kind() -> None:
    block = dt.analyze(OPENED).reasoning
    assert block is not None
    assert ("<think>", "</think>", "prompt") == (block.start, block.end, block.opened_by)


@pytest.mark.parametrize(
    ("source", "start"),
    [
        (CHATML.replace("{{ m.content }}", "{{ m.content[0].text }}"), "<|im_start|>assistant\n"),
        ("{% if messages[-1].role != 'user' %}{{ raise_exception('users come last') }}{% endif %}" + CHATML, ""),
        ("{% for d in documents %}{{ d }}{% endfor %}" + CHATML, "<|im_start|>assistant\n"),
    ],
)
def test_templates_that_take_other_conversations_are_shown_them(source: str, start: str) -> None:
    dialect = dt.analyze(source)
    assert dialect.turn.start.startswith(start)
    assert "Hello" == dialect.parse("Hello<|im_end|>", prompt="<|im_start|>assistant\n").content


def test_a_dialect_carries_what_is_not_proved_and_warns_once_of_its_use() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}<calls>{% for c in m.tool_calls %}"
        "<do>{{ c.function.name }}|{{ c.function.arguments | tojson }}</do>{{ '</calls>' if loop.index == 2 else '' }}"
        "{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    dialect = dt.analyze(source)
    assert {"calls"} == set(dialect.unproven)
    assert any("one call" in note for note in dialect.notes)
    with pytest.warns(dt.UnprovenWarning, match="did not prove calls"):
        dialect.format(TOOLS)
    dialect.format(TOOLS)


TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def test_calls_that_would_be_misread_are_refused_with_the_reason() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<do>"
        "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{% endfor %})</do>"
        "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    analysis = analyze_template(source)
    assert () == analysis.dialect.calls
    assert any("misread" in note for note in analysis.notes)
    assert "failed" == dt.check(source)["call"].status


def test_indentation_that_stands_before_a_turn_is_no_header() -> None:
    indented = (
        "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}<|assistant|>\n{% else %}          \n"
        "                      {{ m.content }}{% for c in m.tool_calls or [] %}\n        <do>"
        "{{ c.function.name }}|{{ c.function.arguments | tojson }}</do>{% endfor %}<|end|>{% endif %}{% endfor %}\n\n"
    )
    dialect = dt.analyze(indented)
    assert "<|assistant|>" == dialect.turn.start
    made = dialect.format(TOOLS, "required").format
    assert dt.accepts(made, " " * 30 + "<do>look|{}</do>")


def test_a_variable_may_have_any_name() -> None:
    assert "<|im_end|>" == dt.analyze("{{ self.NAME }}" + CHATML).turn.end


def test_a_template_that_goes_over_tools_of_its_own_is_given_none_of_them() -> None:
    analysis = analyze_template("{% for t in tools %}{{ t.definitions.items() }}{% endfor %}" + CHATML)
    assert "<|im_start|>assistant\n" == analysis.dialect.turn.start


CDATA = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<do {{ c.function.name }}>"
    "{% for k, v in c.function.arguments.items() %}<arg {{ k }}>{% if v is string and '<' in v or '\n' in v %}"
    "<![CDATA[{{ v }}]]>{% else %}{{ v if v is string else v | tojson }}{% endif %}</arg>{% endfor %}</do>"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_strings_may_stand_between_the_markers_of_character_data() -> None:
    dialect = dt.analyze(CDATA)
    tools = [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]
    output = "<do f><arg a><![CDATA[if x < 1:\n    y]]></arg></do>"
    assert [{"a": "if x < 1:\n    y"}] == [call.value for call in dialect.parse(output, tools).tool_calls]
    assert dt.accepts(dialect.format(tools, "required").format, output)


# A last turn goes on behind what the prompt has written, and turns of history have nothing of that.
PREFILLED = (
    "{% for m in messages %}{% if m.role == 'assistant' and loop.last %}<|assistant|>\n<think>\n{{ m.content }}"
    "<|end|>\n"
    "{% else %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n<think>\n{% endif %}"
)


def test_a_block_that_is_named_for_thoughts_is_not_taken_for_content() -> None:
    block = dt.analyze(PREFILLED).reasoning
    assert block is not None
    assert ("<think>", "</think>", "prompt") == (block.start, block.end, block.opened_by)


def test_a_last_turn_that_is_written_into_opened_reasoning_fails() -> None:
    found = dt.check(PREFILLED)["content"]
    assert "failed" == found.status
    assert found.detail.startswith("as the last turn")


def test_what_stands_behind_a_conversation_and_tells_who_spoke_last_is_no_prompt() -> None:
    asked = "[END]\nJudge the last message, which is of {{ messages[-1].role }}.<|im_end|>"
    source = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}" + asked
    assert dt.analyze(source).turn.start.startswith("assistant:")
    assert "failed" == dt.check(source)["prompt"].status


def test_a_turn_in_which_the_end_of_the_sequence_stands_is_not_generated_to_its_end() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<do>"
        "{{ c.function.name }}|{{ c.function.arguments | tojson }}{{ eos_token }}{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    assert "failed" == dt.check(source, "", "</s>")["constraint"].status
    assert "stop at <|end|> too" in dt.check(CDATA + "{{ '' and eos_token }}", "", "</s>")["constraint"].detail


def test_calls_that_are_written_as_they_come_are_allowed_in_the_orders_of_clients() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}<calls>{{ m.tool_calls | tojson }}"
        "</calls>{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    made = dt.analyze(source).format(TOOLS, "required").format
    for head in ('"id": "a1", "type": "function"', '"type": "function", "id": "a1"'):
        assert dt.accepts(made, f'<calls>[{{{head}, "function": {{"name": "look", "arguments": {{}}}}}}]</calls>')


# Line breaks and quotes are escaped, and a tab stands as it is.
ESCAPED = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}<calls>[{% for c in m.tool_calls %}"
    "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ \"'\" ~ (v | replace('\\\\', "
    "'\\\\\\\\') | replace(\"'\", \"\\\\'\") | replace('\n', '\\\\n')) ~ \"'\" if v is string else v | tojson }}"
    "{{ ', ' if not loop.last }}{% endfor %}){{ ', ' if not loop.last }}{% endfor %}]</calls>{% endif %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_control_characters_stand_in_strings_as_the_template_writes_them() -> None:
    assert dt.check(ESCAPED).passed
    dialect = dt.analyze(ESCAPED)
    tools = [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]
    made = dialect.format(tools, "required").format
    assert dt.accepts(made, "<calls>[f(a='x\ty\\nz')]</calls>")
    assert not dt.accepts(made, "<calls>[f(a='x\ny')]</calls>")
