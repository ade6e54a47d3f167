"""Where a chat template comes from: text, a file, the folder of a tokenizer, a GGUF model, a tokenizer in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.errors import TemplateError, VocabularyError
from dovetail.typing import TemplateHolder
from dovetail.typing import TemplateSource as Source

_CONFIG, _TEMPLATE, _PROCESSOR = "tokenizer_config.json", "chat_template.jinja", "chat_template.json"
# Of several templates under names, the one that can say most.
_NAMES = ("tool_use", "default")
_GGUF = "tokenizer.chat_template"
_MAX_FILE = 1 << 26  # bytes of a tokenizer_config.json
_FIX = "give a template, a tokenizer's folder, a tokenizer_config.json, a .jinja or a .gguf file, or a tokenizer"


class TemplateSource(NamedTuple):
    """The text of a chat template with the tokens that it may write, and where it was found."""

    text: str
    bos_token: str = ""
    eos_token: str = ""
    origin: str = ""


def find_template(source: Source) -> TemplateSource:
    """The chat template in `source`; text that is the path of a file or folder is read as such."""
    if isinstance(source, str) and not _is_path(source):
        if _looks_like_path(source):
            raise TemplateError("there is no such file", source, _FIX)
        return TemplateSource(source, origin="the text given")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            return _in_folder(path) if path.is_dir() else _in_file(path)
        except OSError as error:
            raise TemplateError(f"cannot read the file: {error.strerror}", str(path), _FIX) from error
    return _in_tokenizer(source)


def tokenizer_config(source: str | os.PathLike[str]) -> dict[str, Any]:
    """The tokenizer_config.json of a folder, or nothing where there is none."""
    path = Path(source) / _CONFIG if not isinstance(source, str) or _is_path(source) else None
    return _config(path) if path and path.is_file() else {}


def _is_path(text: str) -> bool:
    return _looks_like_path(text) and Path(text).exists()


def _looks_like_path(text: str) -> bool:
    return "{" not in text and "\n" not in text and len(text) < 4096 and "\0" not in text


def _in_folder(folder: Path) -> TemplateSource:
    config = _config(folder / _CONFIG) if (folder / _CONFIG).is_file() else {}
    if (folder / _TEMPLATE).is_file():
        return TemplateSource(_text(folder / _TEMPLATE), *_tokens(config), str(folder / _TEMPLATE))
    for name in (_PROCESSOR, _CONFIG):
        if (folder / name).is_file() and (text := _chosen(_config(folder / name).get("chat_template"))):
            return TemplateSource(text, *_tokens(config), str(folder / name))
    raise TemplateError("there is no chat template in this folder", str(folder), _FIX)


def _in_file(path: Path) -> TemplateSource:
    if path.suffix == ".gguf":
        return _in_gguf(path)
    if path.suffix != ".json":
        return TemplateSource(_text(path), origin=str(path))
    config = _config(path)
    text = _chosen(config.get("chat_template"))
    if not text:
        raise TemplateError("there is no chat_template in this file", str(path), _FIX)
    return TemplateSource(text, *_tokens(config), str(path))


def _in_gguf(path: Path) -> TemplateSource:
    from dovetail.engine.loaders_gguf import read_metadata

    try:
        metadata = read_metadata(path)
    except VocabularyError as error:
        raise TemplateError(error.problem, error.path, error.fix) from error
    templates = {name: metadata.get(f"{_GGUF}.{name}") for name in _NAMES} | {"default": metadata.get(_GGUF)}
    text = next((templates[name] for name in _NAMES if isinstance(templates[name], bytes) and templates[name]), None)
    if text is None:
        raise TemplateError("there is no chat template in this model file", str(path), _FIX)
    tokens = metadata.get("tokenizer.ggml.tokens") or []
    ids = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")]
    bos, eos = (_decoded(tokens[i]) if isinstance(i, int) and i < len(tokens) else "" for i in ids)
    return TemplateSource(_decoded(text), bos, eos, str(path))


def _in_tokenizer(tokenizer: TemplateHolder) -> TemplateSource:
    text = _chosen(getattr(tokenizer, "chat_template", None))
    if not text:
        raise TemplateError(f"there is no chat template in this {type(tokenizer).__name__}", "", _FIX)
    # A processor holds its tokenizer, and that the tokens.
    holder = getattr(tokenizer, "tokenizer", tokenizer)
    bos, eos = (str(getattr(holder, name, None) or "") for name in ("bos_token", "eos_token"))
    return TemplateSource(text, bos, eos, type(tokenizer).__name__)


def _chosen(template: Any) -> str:
    """The template itself, or one of several under names."""
    if isinstance(template, list):
        template = {row.get("name"): row.get("template") for row in template if isinstance(row, dict)}
    if isinstance(template, Mapping):
        template = next((template[name] for name in (*_NAMES, *template) if template.get(name)), None)
    return template if isinstance(template, str) else ""


def _tokens(config: Mapping[str, Any]) -> tuple[str, str]:
    bos, eos = (config.get(name) for name in ("bos_token", "eos_token"))
    return _token(bos), _token(eos)


def _token(value: Any) -> str:
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def _config(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_FILE:
        raise TemplateError(f"the file has more than {_MAX_FILE} bytes", str(path), _FIX)
    try:
        config = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TemplateError):
            raise
        raise TemplateError(f"the file is not JSON: {error}", str(path), _FIX) from None
    if not isinstance(config, dict):
        raise TemplateError("the file holds no object", str(path), _FIX)
    return config


def _text(path: Path) -> str:
    return _decoded(path.read_bytes(), str(path))


def _decoded(data: bytes, place: str = "") -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError("the template is not UTF-8", place or f"byte {error.start}", "save it as UTF-8") from None
