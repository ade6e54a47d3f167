"""Chat templates render as Transformers renders them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
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
    "{{ ('<{}>'|safe).format('<') }}{{ '<{}>'.format('<'|safe) }}{{ 'banana'.rfind('an') }}{{ 'xxaxx'.strip('x') }}",
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


TURNS = (
    "{% for m in messages %}<{{ m.role }}>{% if m.thinking %}({{ m.thinking }}){% endif %}"
    "{{ m.content }}</>{% endfor %}"
)
CONTINUED: list[tuple[str, dict[str, Any], bool | str]] = [
    (TURNS, {"content": "Hello, "}, True),
    (TURNS.replace("m.content }}", "m.content | trim }}"), {"content": "Hello, "}, True),
    (TURNS, {"content": "", "reasoning_content": "I think "}, "reasoning_content"),
    (TURNS, {"content": "", "reasoning": "I think"}, "thinking"),
    (TURNS.replace("m.content }}", "m.content[0].text }}"), {"content": [{"type": "text", "text": "Hel"}]}, "content"),
]


@pytest.mark.parametrize(("source", "message", "field"), CONTINUED)
def test_a_message_is_continued_where_transformers_continues_it(
    source: str, message: dict[str, Any], field: bool | str
) -> None:
    chat = [{"role": "assistant", **message}]
    assert theirs(source, chat, continue_final_message=field) == ChatTemplate(source).render(
        chat, continue_final_message=field
    )


def test_what_a_template_leaves_out_cannot_be_continued() -> None:
    for source, message, words in (
        (TURNS, {"role": "assistant"}, "no content to continue"),
        ("{{ messages[0].role }}", {"role": "assistant", "content": "Hel"}, "leaves out"),
    ):
        with pytest.raises(dt.TemplateError, match=words):
            ChatTemplate(source).render([message], continue_final_message=True)


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


# Not among them: slices of constants, which jinja2 works out in another way than at run time.
ATOMS = st.sampled_from(
    "0 1 -2 3.5 true none 'ab' 'x y' '<&>' s t n items pairs d missing [] {} (1,2) [1,'a'] {'k':1}".split(" ")
)
OPERATORS = st.sampled_from("+ - * / // % ~ == != < <= in and or".split())
NAMES = st.sampled_from(["s", "t", "items", "n", "d"])
FILTERS = st.sampled_from(
    "upper lower title trim length list first last join join(',') tojson string int float abs sort unique reverse "
    "default('z') default('z',true) replace('a','b') indent center(7) batch(2)|list slice(2)|list sum min max "
    "items|list map('string')|list select|list reject|list map('upper')|join selectattr('k')|list wordcount e "
    "safe striptags urlencode truncate(3) wordwrap(2) round capitalize dictsort pprint format(1) xmlattr".split()
)
TESTS = st.sampled_from(
    "defined none string number mapping sequence iterable odd even lower upper true callable".split()
)
METHODS = st.sampled_from(
    "upper() split() split('b') strip() strip('a') replace('a','c') startswith('a') find('b') rfind('b') count('a') "
    "keys()|list items()|list get('k') get('q','z') title() zfill(4) ljust(5) partition('b') splitlines() join('ab') "
    "index('a') format(1) encode() isalpha() k foo".split(" ")
)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, OPERATORS, inner).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(inner, inner, inner).map("({0[0]} < {0[1]} <= {0[2]})".format),
        st.tuples(inner, FILTERS).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, TESTS).map("({0[0]} is {0[1]})".format),
        st.tuples(inner, METHODS).map("({0[0]}).{0[1]}".format),
        pair.map("({0[0]})[{0[1]}]".format),
        NAMES.map("{}[1:]".format),
        NAMES.map("{}[::-1]".format),
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
        pair.map("[{0[0]}, {0[1]}]".format),
        pair.map("{{ {0[0]}: {0[1]} }}".format),
        inner.map("(not {})".format),
    )


EXPRESSIONS = st.recursive(ATOMS, compound, max_leaves=5)
VALUES = {"s": "abba", "t": "Grüße\n 猫", "n": 7, "items": ["b", "a", "b"], "d": {"k": "v", "a": [1]}}
VALUES |= {"pairs": [{"k": 1}, {"q": 2}]}


@settings(max_examples=200)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=2))
def test_any_expression_means_what_it_means_in_transformers(expressions: list[str]) -> None:
    source = "".join(f"{{{{ {text} }}}}|" for text in expressions)
    wanted = anything(lambda: theirs(source, [], **VALUES))
    got = anything(lambda: ChatTemplate(source).render([], **VALUES))
    assert _without_addresses(wanted) == _without_addresses(got), source


def anything(run: Callable[[], str]) -> str | None:
    """What comes out, or None for an error of any kind; templates have no limits in Transformers."""
    try:
        return run()
    except Exception as error:
        assert not isinstance(error, dt.LimitError)
        return None


def _without_addresses(text: str | None) -> str | None:
    """What Python shows of its own objects has addresses, and lazy filters are ours."""
    return text and re.sub(r"<[^<>]* at 0x[0-9a-f]+>|&lt;.* at 0x[0-9a-f]+&gt;", "<object>", text)
