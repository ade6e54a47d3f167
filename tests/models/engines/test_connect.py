"""What `connect` makes of addresses and of places of chat templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xgrammar
from xgrammar.testing import _is_grammar_accept_string

import dovetail as dt
from dovetail.errors import ModelError
from dovetail.models import tiny
from dovetail.models.engines import connect
from dovetail.models.engines.replica import Address
from dovetail.models.engines.schemas import is_common


@pytest.mark.parametrize(
    "text", ["", "vllm", "http://a:8000", "ollama=http://a:1", "vllm=a:8000", "vllm=ftp://a", "llama=http://"]
)
def test_what_is_no_address_is_told_with_those_that_are(text: str) -> None:
    with pytest.raises(ModelError, match=r"no address(.|\n)*vllm=http://HOST:PORT"):
        Address.read(text)


def test_an_address_is_taken_as_people_write_it_and_shown_without_its_password() -> None:
    address = Address.read("vllm=http://me:secret@host:8000/v1/")
    assert (address.url, address.name) == ("http://me:secret@host:8000", "http://host:8000")


def test_the_chat_template_is_found_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny.make(tmp_path / "little", "qwen_3")
    hub = tmp_path / "hub" / "models--me--little"
    (hub / "refs").mkdir(parents=True)
    (hub / "refs" / "main").write_text("abc")
    (hub / "snapshots").mkdir()
    (hub / "snapshots" / "abc").symlink_to(folder)
    template = tmp_path / "t.jinja"
    template.write_text(
        json.loads((folder / "tokenizer_config.json").read_text()).get("chat_template")
        or (folder / "chat_template.jinja").read_text()
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    prompts = set()
    for place, name in ((folder, "little"), ("me/little", "me/little"), (template, "t")):
        model = connect(["vllm=http://nowhere:1"], place)
        assert model.name == name
        prompts.add(model.render([{"role": "user", "content": "Hi"}]).text)
        model.close()
    assert len(prompts) == 1


def test_without_a_template_the_dialect_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="give --model"):
        connect(["vllm=http://nowhere:1"])
    with pytest.raises(ModelError, match="nothing is fetched here"):
        connect(["vllm=http://nowhere:1"], "me/not-there")
    with pytest.raises(ModelError, match="no chat template"):
        connect(["vllm=http://nowhere:1"], tmp_path)
    with pytest.raises(ModelError, match="there is no engine"):
        connect([], dialect="qwen_3")
    model = connect(["vllm=http://nowhere:1"], dialect="qwen_3")
    assert (model.name, model.tools_in_prompt) == ("qwen_3", False)
    model.close()


CLOSED: dict[str, Any] = {"type": "object", "additionalProperties": False}
A = {"type": "integer"}
SCHEMAS: list[Any] = [
    *(A, {"type": "number", "minimum": 1.5}, {"type": "integer", "minimum": 3, "maximum": 5}, {"type": "boolean"}),
    *({"type": "string", "minLength": 2, "maxLength": 3}, {"type": "string", "pattern": "^a+$", "minLength": 3}),
    *(
        {"enum": ["a", "b"]},
        {"enum": ["a", 1]},
        {"type": "string", "enum": ["a", 1]},
        {"type": "string", "enum": ["a"]},
    ),
    *({"const": "a"}, {"const": {"a": 1}}, {"type": "array", "items": A, "minItems": 2, "maxItems": 3}),
    *(
        {"type": "array", "items": A, "uniqueItems": True},
        {"type": "array", "contains": A},
        {"type": ["integer", "null"]},
    ),
    *(
        CLOSED | {"properties": {"a": A, "b": A}, "required": ["b"]},
        CLOSED | {"properties": {"a": A}, "required": ["b"]},
    ),
    *(CLOSED | {"properties": {"a": A}, "minProperties": 1}, {"properties": {"a": A}}, CLOSED, {"type": "object"}),
    *(
        {"$defs": {"n": A}, "$ref": "#/$defs/n"},
        {"$defs": {"n": A}, "$ref": "#/$defs/n", "minimum": 3},
        True,
        False,
        {},
    ),
    *({"anyOf": [A, {"type": "null"}]}, {"type": "integer", "anyOf": [{"minimum": 3}, {"maximum": 1}]}, {"not": A}),
    *(
        {"allOf": [A, {"minimum": 3}]},
        {"oneOf": [A, {"type": "number"}]},
        {"if": A, "then": False},
        {"enum": []},
        {"type": 3},
    ),
]
PROBES = [
    *(
        "1",
        "2",
        "3",
        "5",
        "6",
        "33",
        "1.5",
        "1.4",
        '"a"',
        '"b"',
        '"ab"',
        '"abc"',
        '"abcd"',
        "true",
        "null",
        "[]",
        "[1]",
    ),
    *(
        "[1, 2]",
        "[1, 1]",
        "[1, 2, 3, 4]",
        "{}",
        '{"a": 1}',
        '{"b": 1}',
        '{"a": 1, "b": 1}',
        '{"b": 1, "a": 1}',
        '"aaa"',
    ),
]


def test_schemas_that_engines_get_as_they_are_mean_the_same_there() -> None:
    vocabulary = dt.Vocabulary([bytes([byte]) for byte in range(256)])
    common = [schema for schema in SCHEMAS if is_common(schema)]
    assert len(common) == 14
    for schema in common:
        held = {"type": "json_schema", "json_schema": schema}
        theirs = xgrammar.Grammar.from_structural_tag(json.dumps({"type": "structural_tag", "format": held}))
        for text in PROBES:
            ours = dt.compile(held, vocabulary).matcher()
            fits = ours.accept_bytes(text) and ours.is_complete
            assert (schema, text, fits) == (schema, text, _is_grammar_accept_string(theirs, text))
