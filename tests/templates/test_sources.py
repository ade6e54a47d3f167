"""A chat template is found wherever models keep it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import pytest

import dovetail as dt
from dovetail.templates.sources import find_template

TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
NAMED = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": TEMPLATE}]


def config(template: Any, **more: Any) -> str:
    return json.dumps({"chat_template": template, "bos_token": "<s>", "eos_token": {"content": "</s>"}, **more})


def test_text_is_a_template() -> None:
    assert (TEMPLATE, "", "") == find_template(TEMPLATE)[:3]
    with pytest.raises(dt.TemplateError, match="no such file") as caught:
        find_template("missing.jinja")
    assert "missing.jinja" == caught.value.path


@pytest.mark.parametrize("template", [TEMPLATE, NAMED])
def test_a_tokenizer_config_holds_a_template_and_its_tokens(tmp_path: Path, template: Any) -> None:
    (tmp_path / "tokenizer_config.json").write_text(config(template))
    for source in (tmp_path, str(tmp_path), tmp_path / "tokenizer_config.json"):
        assert (TEMPLATE, "<s>", "</s>") == find_template(source)[:3]


def test_a_template_beside_the_config_comes_first(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(config("old"))
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    assert (TEMPLATE, "<s>", "</s>") == find_template(tmp_path)[:3]
    assert find_template(tmp_path).origin.endswith("chat_template.jinja")


def test_a_processor_keeps_it_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    assert TEMPLATE == find_template(tmp_path).text


def test_a_tokenizer_in_memory_holds_a_template() -> None:
    tokenizer = SimpleNamespace(chat_template={"default": TEMPLATE}, bos_token="<s>", eos_token=None)
    assert (TEMPLATE, "<s>", "") == find_template(tokenizer)[:3]
    assert (TEMPLATE, "<s>", "") == find_template(SimpleNamespace(chat_template=TEMPLATE, tokenizer=tokenizer))[:3]


def test_a_gguf_file_holds_a_template(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_chat_template(NAMED)
    writer.add_token_list(["<s>", "</s>", "a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert (TEMPLATE, "<s>", "</s>") == find_template(tmp_path / "model.gguf")[:3]


MISSING = [
    ("tokenizer_config.json", "{}", "no chat_template"),
    ("tokenizer_config.json", "[]", "no object"),
    ("tokenizer_config.json", "{", "not JSON"),
    ("tokenizer_config.json", b"\xff", "not UTF-8"),
    ("model.gguf", "GGUF", "announced"),
]


@pytest.mark.parametrize(("name", "content", "words"), MISSING)
def test_what_holds_no_template_is_told(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(dt.TemplateError, match=words) as caught:
        find_template(path)
    assert caught.value.fix
    assert caught.value.path


def test_a_folder_or_an_object_without_a_template_is_told(tmp_path: Path) -> None:
    with pytest.raises(dt.TemplateError, match="in this folder"):
        find_template(tmp_path)
    with pytest.raises(dt.TemplateError, match="in this object"):
        find_template(object())
    with pytest.raises(dt.TemplateError, match="No such file"):
        find_template(tmp_path / "missing.jinja")
