"""Each format object: its fields, their defaults, and the way back to JSON."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.errors import FormatError
from dovetail.formats import AnyTextFormat, ConstStringFormat, FormatModel, StructuralTag, TagFormat, load_format
from dovetail.formats.models import MODELS

TEXT = {"type": "any_text"}
TOKEN = {"type": "token", "token": 7}
TAG = {"type": "tag", "begin": "<a>", "content": TEXT, "end": "</a>"}
TOKEN_TAG = {"type": "tag", "begin": TOKEN, "content": TEXT, "end": TOKEN}

# Required fields, and the defaults of the others.
FORMATS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "const_string", "value": ""}, {}),
    (
        {"type": "json_schema", "json_schema": {"type": "object"}},
        {"style": "json", "any_order": False, "max_whitespace_cnt": None, "excludes": (), "strict": True, "pad": ""},
    ),
    ({"type": "json_schema", "json_schema": True}, {}),
    ({"type": "qwen_xml_parameter", "json_schema": {"type": "object"}}, {}),
    ({"type": "grammar", "grammar": 'root ::= "a"'}, {}),
    ({"type": "regex", "pattern": "a+"}, {}),
    ({"type": "any_text"}, {"excludes": (), "max_tokens": None, "max_chars": None}),
    ({"type": "sequence", "elements": [TEXT]}, {}),
    ({"type": "or", "elements": [TEXT, TAG]}, {}),
    ({"type": "optional", "content": TEXT}, {}),
    ({"type": "plus", "content": TEXT}, {}),
    ({"type": "star", "content": TEXT}, {}),
    ({"type": "repeat", "min": 1, "max": -1, "content": TEXT}, {}),
    (TAG, {}),
    ({"type": "tag", "begin": "", "content": TEXT, "end": ["</a>", ""]}, {}),
    (TOKEN_TAG, {}),
    (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG]},
        {"at_least_one": False, "stop_after_first": False, "excludes": ()},
    ),
    (
        {"type": "tags_with_separator", "tags": [TAG], "separator": ""},
        {"at_least_one": False, "stop_after_first": False},
    ),
    ({"type": "dispatch", "rules": [["<a>", TEXT]]}, {"loop": True, "excludes": ()}),
    ({"type": "token", "token": "<|call|>"}, {}),
    ({"type": "exclude_token"}, {"exclude_tokens": ()}),
    ({"type": "any_tokens"}, {"exclude_tokens": (), "max_tokens": None}),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [7], "tags": [TOKEN_TAG]},
        {"exclude_tokens": (), "at_least_one": False, "stop_after_first": False},
    ),
    ({"type": "token_dispatch", "rules": [[7, TEXT], ["<x>", TEXT]]}, {"loop": True, "exclude_tokens": ()}),
    ({"type": "capture", "name": "reasoning", "content": TEXT}, {}),
]
STYLES = """
    json qwen_xml minimax_xml minimax_m3_xml deepseek_xml deepseek_v4_1_xml glm_xml glm_4_5_xml muse_xml cohere_xml
    kimi_k3_xml
""".split()


def name(case: object) -> str:
    return str(case["type"]) if isinstance(case, dict) and "type" in case else ""


def test_the_table_below_knows_every_format() -> None:
    assert {fmt["type"] for fmt, _ in FORMATS} == {model.model_fields["type"].default for model in MODELS}


@pytest.mark.parametrize(("given", "defaults"), FORMATS, ids=name)
def test_a_format_serializes_back_to_the_same_json(given: dict[str, Any], defaults: dict[str, Any]) -> None:
    fmt = load_format(given)
    assert given == fmt.to_dict()
    assert json.loads(fmt.model_dump_json(exclude_unset=True)) == given


@pytest.mark.parametrize(("given", "defaults"), FORMATS, ids=name)
def test_fields_that_are_left_out_have_the_documented_defaults(given: dict[str, Any], defaults: dict[str, Any]) -> None:
    fmt = load_format(given)
    assert defaults == {field: getattr(fmt, field) for field in defaults}


@pytest.mark.parametrize(("given", "defaults"), FORMATS, ids=name)
def test_a_model_made_by_hand_equals_the_loaded_one(given: dict[str, Any], defaults: dict[str, Any]) -> None:
    by_hand = type(load_format(given))(**{key: value for key, value in given.items() if key != "type"})
    assert by_hand == load_format(given)
    assert given == by_hand.to_dict()
    assert by_hand == pickle.loads(pickle.dumps(by_hand))


@pytest.mark.parametrize(("given", "defaults"), FORMATS, ids=name)
def test_unknown_fields_are_ignored(given: dict[str, Any], defaults: dict[str, Any]) -> None:
    assert load_format(given) == load_format(given | {"comment": "mine"})


@pytest.mark.parametrize("style", STYLES)
def test_every_style_is_known(style: str) -> None:
    fmt = {"type": "json_schema", "json_schema": {"type": "object"}, "style": style}
    assert fmt == load_format(fmt).to_dict()


UNTYPED = [
    ({"begin": "<a>", "content": TEXT, "end": "</a>"}, "tag"),
    ({"value": "a"}, "const_string"),
    ({"json_schema": True}, "json_schema"),
    ({"excludes": []}, "any_text"),
    ({"elements": [TEXT]}, "sequence"),
    ({"triggers": ["<a"], "tags": [TAG], "excludes": ["x"]}, "triggered_tags"),
    ({"tags": [TAG], "separator": ","}, "tags_with_separator"),
    ({"content": TEXT}, "optional"),
    ({"content": TEXT, "min": 2, "max": 2}, "repeat"),
    ({"rules": [["a", TEXT]]}, "dispatch"),
    ({"rules": [[7, TEXT]]}, "token_dispatch"),
]


@pytest.mark.parametrize(("given", "kind"), UNTYPED, ids=[kind for _, kind in UNTYPED])
def test_a_type_that_is_left_out_is_told_by_the_fields(given: dict[str, Any], kind: str) -> None:
    fmt = load_format(given)
    assert kind == fmt.type
    assert given == fmt.to_dict()
    assert load_format(given | {"type": kind}) == fmt


def test_a_token_object_needs_no_type_as_a_delimiter() -> None:
    given = {"type": "tag", "begin": {"token": 1}, "content": TEXT, "end": {"token": "</s>"}}
    assert given == load_format(given).to_dict()


def test_models_are_frozen() -> None:
    fmt = ConstStringFormat(value="a")
    with pytest.raises(ValueError, match="frozen"):
        fmt.value = "b"


def test_a_model_made_by_hand_from_the_wrong_parts_is_our_error() -> None:
    with pytest.raises(FormatError) as caught:
        TagFormat(begin="<a>", content=AnyTextFormat(), end=3)  # type: ignore[arg-type]
    assert ("/end", "`end` is 3") == (caught.value.path, caught.value.problem)


def test_a_structural_tag_holds_a_format() -> None:
    tag = StructuralTag(format=AnyTextFormat(excludes=("a",)))
    expected = {"type": "structural_tag", "format": {"type": "any_text", "excludes": ["a"]}}
    assert expected == tag.to_dict()
    assert tag.format == load_format(tag) == load_format(expected)


words = st.text("ab<>é", max_size=3)
full = st.text("ab<>é", min_size=1, max_size=3)


def made_of(children: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    tags = st.fixed_dictionaries(
        {"begin": full, "content": children, "end": full | st.lists(full, min_size=1)},
        optional={"type": st.just("tag")},
    )
    lists = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        tags,
        st.fixed_dictionaries({"type": st.sampled_from(["sequence", "or"]), "elements": lists}),
        st.fixed_dictionaries({"type": st.sampled_from(["optional", "plus", "star"]), "content": children}),
        st.fixed_dictionaries({"type": st.just("capture"), "name": full, "content": children}),
        st.fixed_dictionaries(
            {"type": st.just("tags_with_separator"), "tags": st.lists(tags, min_size=1), "separator": words},
            optional={"at_least_one": st.booleans()},
        ),
        st.fixed_dictionaries(
            {"type": st.just("dispatch"), "rules": st.lists(st.tuples(full, children).map(list), min_size=1)},
            optional={"loop": st.booleans(), "excludes": st.lists(full)},
        ),
    )


leaves = st.one_of(
    st.fixed_dictionaries({"type": st.just("const_string"), "value": words}),
    st.fixed_dictionaries(
        {"type": st.just("any_text")},
        optional={"excludes": st.lists(full), "max_chars": st.none() | st.integers(0, 9)},
    ),
    st.fixed_dictionaries({"token": st.integers(0, 9) | full, "type": st.just("token")}),
)


@given(given_format=st.recursive(leaves, made_of, max_leaves=8))
def test_any_format_serializes_back_to_the_same_json(given_format: dict[str, Any]) -> None:
    fmt = load_format(given_format)
    assert given_format == fmt.to_dict()
    assert fmt == load_format(json.dumps(fmt.to_dict())) == load_format(fmt)


def test_a_deep_schema_serializes_too() -> None:
    schema: dict[str, Any] = {}
    for _ in range(1000):
        schema = {"items": schema}
    written = load_format({"type": "json_schema", "json_schema": schema}).to_dict()
    assert schema["items"] is written["json_schema"]["items"]


def test_recorded_formats_serialize_back_to_the_same_json(conformance: Path) -> None:
    for file in ("structural_tag", "structural_tag_token", "model_tags"):
        for line in (conformance / "xgrammar" / f"{file}.jsonl").read_text().splitlines():
            given = json.loads(line)["structural_tag"]
            assert given["format"] == load_format(given).to_dict()


def test_formats_have_a_base_class_to_ask_for() -> None:
    assert all(issubclass(model, FormatModel) for model in MODELS)
