"""Templates: what is refused when they are loaded, with its place, and where they are kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dovetail as dt

MINIMAL = {"start_anchor": "Z", "fields": {"x": {"open": "<x>", "close": "</x>"}}}


def field(**keys: Any) -> dict[str, Any]:
    return {"start_anchor": "Z", "fields": {"x": {"open": "<x>", **keys}}}


def tags(**arguments: Any) -> dict[str, Any]:
    return field(content="xml-inline", content_args=arguments)


REFUSED = [
    # template, the place of the mistake, words of the message
    ("[1]", "", "is an object"),
    ("{", "", "not JSON"),
    ({"start_anchor": "Z", "fields": {"x": {"open": b"x"}}}, "", "not JSON"),
    ({**MINIMAL, "version": 2}, "/version", "only 1 is known"),
    ({**MINIMAL, "defaults": {"x": 1}, "fields": {"x": {"open": "a", "repeats": True}}}, "/defaults/x", "from a list"),
    (
        {**MINIMAL, "defaults": {"x": 1}, "fields": {"x": {"open": "a", "repeats": True, "join": ""}}},
        "/defaults/x",
        "from a text",
    ),
    ({"start_anchor": "Z", "fields": {"a/b": 1}}, "/fields/a~1b", "not an object"),
    (field(content_args=[]), "/fields/x/content_args", "not an object"),
    (field(content_args={"strip": "yes"}), "/fields/x/content_args/strip", "not a boolean"),
    (field(content="json", content_args={"string_delims": ["'"]}), "/fields/x/content_args/string_delims", "pairs"),
    (field(content="kv-lines", content_args={"kv_sep": ""}), "/fields/x/content_args/kv_sep", "not empty"),
    (tags(), "/fields/x/content_args/tag_pattern", "is missing"),
    (tags(tag_pattern="("), "/fields/x/content_args/tag_pattern", "no regular expression"),
    (tags(tag_pattern="a"), "/fields/x/content_args/tag_pattern", "no group named key"),
    (tags(tag_pattern="(?P<key>a)", value_parser=1), "/fields/x/content_args/value_parser", "not an object"),
    (
        tags(tag_pattern="(?P<key>a)", value_parser={"name": "yaml"}),
        "/fields/x/content_args/value_parser/name",
        "no content parser 'yaml'",
    ),
    (
        tags(tag_pattern="(?P<key>a)", value_parser={"name": "json", "args": {"allow_non_json": 1}}),
        "/fields/x/content_args/value_parser/args/allow_non_json",
        "not a boolean",
    ),
    (field(transform={"a": ["{nope}"]}), "/fields/x/transform/a/0", "names nothing"),
    (field(transform="a {content}"), "/fields/x/transform", "mixes a placeholder with text"),
    (field(open_pattern="a"), "/fields/x", "both there"),
]


@pytest.mark.parametrize(("template", "path", "words"), REFUSED)
def test_a_mistake_is_told_with_its_place(template: Any, path: str, words: str) -> None:
    with pytest.raises(dt.ResponseTemplateError, match=words) as caught:
        dt.ResponseTemplate.load(template)
    assert path == caught.value.path


def test_nesting_is_bounded() -> None:
    shape: Any = "{content}"
    for _ in range(200):
        shape = [shape]
    with pytest.raises(dt.ResponseTemplateError, match="nested more than 100 deep"):
        dt.ResponseTemplate.load(field(transform=shape))
    parser: dict[str, Any] = {"name": "text"}
    for _ in range(40):
        parser = {"name": "kv-lines", "args": {"value_parser": parser}}
    with pytest.raises(dt.ResponseTemplateError, match="nested more than 32 deep"):
        dt.ResponseTemplate.load(field(content="kv-lines", content_args={"value_parser": parser}))


def test_what_is_ignored_is_noted() -> None:
    template = dt.ResponseTemplate.load(field(repeats="yes", content_args={"trim": True}))
    assert (
        "/fields/x/content_args/trim: this parser has no such argument; it is ignored",
        "/fields/x/repeats: 'yes' is read as True",
    ) == template.notes


def test_a_template_is_its_json() -> None:
    template = dt.ResponseTemplate.load(json.dumps(MINIMAL))
    assert MINIMAL == template.to_dict()
    assert template is dt.ResponseTemplate.load(template)
    template.to_dict()["fields"].clear()
    assert MINIMAL == template.to_dict()


def test_messages_do_not_share_their_defaults() -> None:
    template = {
        "defaults": {"x": []},
        "start_anchor": "Z",
        "fields": {"x": {"open": "<", "close": ">", "repeats": True}},
    }
    assert {"x": ["a"]} == dt.parse_response("<a>", template, prefix="")
    assert {"x": []} == dt.parse_response("", template, prefix="")


def test_a_template_is_kept_with_its_tokenizer(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"eos_token": "</s>"}')
    dt.ResponseTemplate.load(MINIMAL).write_to(tmp_path)
    assert {"eos_token": "</s>", "response_template": MINIMAL} == json.loads(config.read_text())
    for source in (tmp_path, config, str(tmp_path)):
        assert MINIMAL == dt.ResponseTemplate.of_tokenizer(source).to_dict()
    tokenizer = SimpleNamespace(response_template=None)
    dt.ResponseTemplate.load(MINIMAL).write_to(tokenizer)
    assert MINIMAL == dt.ResponseTemplate.of_tokenizer(SimpleNamespace(tokenizer=tokenizer)).to_dict()


@pytest.mark.parametrize("text", [None, "{}", "[]", "{"])
def test_a_tokenizer_without_a_template_is_told(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(dt.ResponseTemplateError):
        dt.ResponseTemplate.of_tokenizer(tmp_path)
    with pytest.raises(dt.ResponseTemplateError, match="has no response template"):
        dt.get_response_parser(SimpleNamespace(), prefix="")


class Letters:
    """A tokenizer whose ids are code points."""

    response_template = MINIMAL

    def decode(self, ids: Any) -> str | list[str]:
        return "".join(map(chr, ids)) if not ids or isinstance(ids[0], int) else ["".join(map(chr, one)) for one in ids]


def ids(text: str) -> list[int]:
    return list(map(ord, text))


def test_token_ids_and_batches_are_read_with_their_tokenizer() -> None:
    tokenizer = Letters()
    assert {"x": "a"} == dt.parse_response(ids("<x>a</x>"), prefix="", tokenizer=tokenizer)
    batch = [ids("a</x>"), ids("b</x>")]
    assert [{"x": "a"}, {"x": "b"}] == dt.parse_response(batch, prefix=ids("Z<x>"), tokenizer=tokenizer)
    assert [{}, {"x": "b"}] == dt.parse_response(batch, prefix=[ids("Z"), ids("Z<x>")], tokenizer=tokenizer)
    assert [] == dt.parse_response([], prefix="", tokenizer=tokenizer)
    parser = dt.get_response_parser(tokenizer, prefix=ids("Z<x>"))
    parser.feed("a</x>")
    assert {"x": "a"} == parser.finalize()[0]


WRONG_INPUTS = [
    # arguments, words of the message
    (("a",), {"prefix": ""}, "neither a template nor a tokenizer"),
    (([1], MINIMAL), {"prefix": ""}, "read with their tokenizer"),
    ((["a", "b"], MINIMAL), {"prefix": ["a"]}, "2 responses and 1 prefixes"),
    (("a", MINIMAL), {}, "together with the prompt"),
]


@pytest.mark.parametrize(("arguments", "options", "words"), WRONG_INPUTS)
def test_what_cannot_be_read_is_told(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(dt.InputError, match=words):
        dt.parse_response(*arguments, **options)


def test_a_parser_takes_no_batch_of_prompts() -> None:
    with pytest.raises(dt.InputError, match="the prefix is a batch"):
        dt.get_response_parser(Letters(), prefix=[[1], [2]])
