"""Chat templates render as Transformers renders them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils import chat_template_utils

import dovetail as dt
from dovetail.templates.render import ChatTemplate

NOON = datetime(2025, 1, 15, 12)
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Wie heißt du? 猫 \"<&>'"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": None}}}]},
    {"role": "tool", "content": "1.5"},
    {"role": "assistant", "content": "Dovetail", "reasoning_content": "Hm."},
]

AGREED = [
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{{ eos_token }}\n{% endfor %}",
    "{%- for m in messages -%}\n   {{ loop.index }} {{ loop.last }} {{ loop.length }}\n{%- endfor %}\n",
    "  {% if true %}  \n  x\n  {% endif %}  \ny\n",
    "{{ messages | tojson }} {{ messages | tojson(indent=2) }} {{ messages[2] | tojson(sort_keys=True) }}",
    "{{ messages | tojson(ensure_ascii=True, separators=(',', ':')) }}",
    "{{ {'a': [1, 2.5, none, true, 'é']} }} {{ [1, (2,), 'x'] }} {{ none }} {{ 1.0 }} {{ true }}",
    "{% for m in messages %}{% if m.role == 'tool' %}{% continue %}{% endif %}"
    "{% if loop.index > 4 %}{% break %}{% endif %}"
    "{{ m.role }},{% endfor %}",
    "{% for m in messages %}{% generation %}{% set x = 1 %}{{ m.content }}{% endgeneration %}{{ x }}{% endfor %}",
    "{% set ns = namespace(n=0, t='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% set ns.t = ns.t ~ ns.n ~ m.role %}"
    "{% endfor %}{{ ns.t }}{{ ns.n ** 2 }}{{ ns.n % 2 }}{{ '%s-%05.1f' % ('a', 1.25) }}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{{ caller() if caller else '' }}{% endmacro %}{{ f(1) }}{{ f(1, b=3) }}"
    "{% call f(4) %}!{% endcall %}",
    "{{ messages | map(attribute='role') | join(',') }}{{ messages | selectattr('role', 'equalto', 'user') | list }}",
    "{{ (messages | map(attribute='role') | map('upper') | unique | list)[0] }}{{ messages | length }}",
    "{% for k, v in messages[2].tool_calls[0].function.arguments | items %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in messages[0] | dictsort %}{{ k }}={{ v }};{% endfor %}{{ dict(a=1) }}{{ dict([('b', 2)]) }}",
    "{{ 'a,b,c'.split(',')[-1] }}{{ ' x '.strip() }}{{ 'x'.center(5, '.') }}"
    "{{ 'a\tb'.expandtabs(4) }}{{ '-'.join('abc') }}",
    "{{ 'abc'[::-1] }}{{ messages[1:]|length }}{{ 'abcabc'.replace('b', 'XX', 1) }}{{ 'abcabc'|replace('b', 'XX') }}",
    "{{ '{0} {a!r:>8} {b:{w}}|'.format(1, a='x', b=2, w=5) }}{{ '{a}'.format_map({'a': [1]}) }}",
    "{{ 'a b'|title }}{{ 'x'|center(9) }}|{{ 'a\nb'|indent(2, true) }}{{ 'a b c'|wordwrap(3) }}"
    "{{ [3, 1, 2]|sort|join }}",
    "{{ [1, 2, 3]|batch(2, 0)|list }}{{ [1, 2, 3]|slice(2)|list }}{{ [[1], [2]]|sum(start=[]) }}{{ 2.567|round(1) }}",
    "{{ strftime_now('%d %b %Y %H:%M') }}{{ 'x' in messages[1].content }}{{ 1 < 2 < 3 }}"
    "{{ 1 not in [1] }}{{ (1, 2) < (1, 3) }}",
    "{{ missing }}{{ missing is defined }}{{ tools is none }}{{ documents is defined }}{{ add_generation_prompt }}",
    "{{ messages[-1].thinking }}{{ messages[-1].reasoning_content }}{{ messages[-1].reasoning is defined }}",
    "{% set x %}a{{ 1 }}b{% endset %}{{ x|upper }}{% filter upper %}abc{% endfilter %}"
    "{% with a = 3 %}{{ a }}{% endwith %}",
    "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}",
    "{% for x in range(9) if x % 2 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}"
    "{% for x in [] %}{% else %}none{% endfor %}",
    "{% block a %}x{% endblock %}{{ self.a() }}{% raw %}{{ x }}{% endraw %}{# note #}{{ '<' | e }}{{ '<b>'|safe }}",
    "{{ '<b>x</b>'|striptags }}{{ 'a/b c'|urlencode }}{{ {'a': 1}|xmlattr }}{{ [1, 'a']|pprint }}"
    "{{ 1234|filesizeformat }}",
    "{{ cycler('a', 'b').next() }}{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ 7 // 2 }}"
    "{{ -7 % 3 }}{{ 7 / 2 }}{{ 'ab' * 2 }}",
]
REFUSED = [
    # source, line, words of the message
    ("x\n{% if %}", "line 2", "not Jinja2"),
    ("\n\n{{ a.b }}", "line 3", "'a' is undefined"),
    ("{{ raise_exception('roles must alternate') }}", "line 1", "roles must alternate"),
    ("{{ 1 / 0 }}", "line 1", "ZeroDivisionError"),
    ("\n{{ messages|nope }}", "line 2", "No filter named 'nope'"),
    ("\n{{ ''.__class__.x }}", "line 2", "sandbox"),
    ("{% macro f() %}\n{{ a.b }}{% endmacro %}\n{{ f() }}", "line 2", "'a' is undefined"),
    ("{{ messages + 1 }}", "line 1", "TypeError"),
]


def theirs(source: str, messages: Any, tools: Any = None, prompt: bool = False, **options: Any) -> str:
    rendered, _ = chat_template_utils.render_jinja_template(
        [messages], tools, chat_template=source, add_generation_prompt=prompt, bos_token="", eos_token="", **options
    )
    return str(rendered[0])


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return NOON

    monkeypatch.setattr(chat_template_utils, "datetime", Stopped)


@pytest.mark.parametrize("source", AGREED)
@pytest.mark.parametrize("prompt", [False, True])
def test_a_template_renders_as_transformers_renders_it(source: str, prompt: bool) -> None:
    assert theirs(source, CHAT, None, prompt) == ChatTemplate(source, clock=lambda: NOON).render(CHAT, None, prompt)


def outcome(run: Callable[[], str]) -> str | None:
    try:
        return run()
    except (dt.TemplateError, chat_template_utils.jinja2.TemplateError, TypeError):
        return None


@pytest.mark.parametrize("kind", ["chat_cases", "generation_prompt_cases"])
def test_the_recorded_cases_render_as_transformers_renders_them(conformance: Path, kind: str) -> None:
    home = conformance / "llama_cpp"
    different, rendered = [], 0
    for line in (home / f"{kind}.jsonl").read_text().splitlines():
        record = json.loads(line)
        given = record["inputs"]
        source = (home / "templates" / record["template"]).read_text()
        tools = [{"type": "function", "function": tool} for tool in given["tools"]] or None
        options = {**(given.get("chat_template_kwargs") or {}), "enable_thinking": given.get("enable_thinking", True)}
        case = given["messages"], tools, given.get("add_generation_prompt", True)
        wanted = outcome(lambda: theirs(source, *case, **options))  # noqa: B023 - called at once
        got = outcome(lambda: ChatTemplate(source, clock=lambda: NOON).render(*case, **options))  # noqa: B023
        rendered += got is not None
        if wanted != got:
            different.append(record["id"])
    assert [] == different
    assert rendered > 30


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_any_value_is_spelled_as_transformers_spells_it(value: Any) -> None:
    source = "{{ x }}{{ x|tojson }}{{ x|tojson(indent=1) }}{{ x ~ x }}{{ [x] == [x] }}{{ x|string }}"
    assert theirs(source, [], x=value) == ChatTemplate(source).render([], x=value)


@pytest.mark.parametrize(("source", "path", "words"), REFUSED)
def test_a_failing_template_is_told_with_its_line(source: str, path: str, words: str) -> None:
    with pytest.raises(dt.TemplateError, match=words) as caught:
        ChatTemplate(source).render(CHAT)
    assert path == caught.value.path
    assert caught.value.fix


def test_a_message_that_is_no_dict_is_refused() -> None:
    with pytest.raises(dt.TemplateError, match="a chat message is a str"):
        ChatTemplate("").render(["hello"])  # type: ignore[list-item]


def test_only_plain_data_reaches_a_template() -> None:
    class Image:
        def save(self) -> None:
            raise AssertionError("called from a template")

    chat = [{"role": "user", "content": [{"type": "image", "image": Image()}]}]
    assert "<Image>" == ChatTemplate("{{ messages[0].content[0].image }}").render(chat)
    with pytest.raises(dt.TemplateError):
        ChatTemplate("{{ messages[0].content[0].image.save() }}").render(chat)
