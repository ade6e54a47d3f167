"""Response templates: the data that says where the parts of a message stand in a model's output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import regex

from dovetail.errors import LimitError, ResponseTemplateError
from dovetail.formats import StructuralTag
from dovetail.response_templates import content, conversion, transform
from dovetail.response_templates.content import Arguments, Parse, pointer
from dovetail.response_templates.delimiters import Delimiter, Watch
from dovetail.response_templates.tools import Tool

_TOP_KEYS = frozenset({"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"})
_FIELD_KEYS = frozenset(
    "open open_pattern close close_pattern content content_args repeats join optional transform transform_each".split()
)
_KEY = "response_template"

Kind = Literal["open", "close"]


@dataclass(frozen=True, eq=False)
class Field:
    """One key of the message: where its regions are, and what their text means."""

    name: str
    open: Delimiter | None
    close: Delimiter | None
    content: str
    parse: Parse
    repeats: bool
    join: str | None
    optional: bool
    transform: Any
    transform_each: bool
    dirty: bool  # streamed text is raw, and means something only when the region is closed

    def value(self, text: str, captures: dict[str, str], limit: float) -> Any:
        """What a region with this text is; raises ValueError where the text does not fit."""
        value = self.parse(text, limit)
        if self.transform is None:
            return value
        if not self.transform_each:
            return self._shape({**captures, "content": value})
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ValueError("transform_each needs a list of objects")
        return [self._shape({**captures, **item}) for item in value]

    @cached_property
    def _shape(self) -> transform.Shape:
        return transform.compiled(self.transform)


Watched = tuple[Watch, list[tuple[Kind, Field]]]


@dataclass(frozen=True, eq=False)
class ResponseTemplate:
    """A loaded and checked template; `notes` tells what in it is ignored."""

    source: dict[str, Any]
    fields: dict[str, Field]
    anchor: Delimiter
    notes: tuple[str, ...] = field(default=())

    @staticmethod
    def load(source: Mapping[str, Any] | str | ResponseTemplate, *, strict: bool = True) -> ResponseTemplate:
        """From the object, from its JSON, or from a template that is loaded already.

        Unless `strict`, a nested parser that does not exist and a tag pattern without a key are only noted, as long as
        no tag needs them: that is how Transformers reads such a template.
        """
        if isinstance(source, ResponseTemplate):
            return source
        if isinstance(source, str):
            source = _from_json(source)
        if not isinstance(source, Mapping):
            raise ResponseTemplateError(f"a response template is an object, not a {type(source).__name__}")
        try:
            return _load_json(json.dumps(source), strict)
        except ResponseTemplateError:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise ResponseTemplateError(f"the template is not JSON: {error}", "", "use plain JSON values") from None

    @staticmethod
    def of_tokenizer(tokenizer: object) -> ResponseTemplate:
        """The template of a Transformers tokenizer or processor, or of a folder or `tokenizer_config.json`."""
        if isinstance(tokenizer, str | Path):
            template = _read_config(_config_path(tokenizer)).get(_KEY)
        else:
            template = getattr(tokenizer, _KEY, None) or getattr(getattr(tokenizer, "tokenizer", None), _KEY, None)
        if template is None:
            raise ResponseTemplateError(
                "the tokenizer has no response template", f"/{_KEY}", "pass template=, or save one with its tokenizer"
            )
        return ResponseTemplate.load(template)

    def write_to(self, tokenizer: object) -> None:
        """Set it on a tokenizer, or write it into the `tokenizer_config.json` of a folder."""
        if not isinstance(tokenizer, str | Path):
            setattr(tokenizer, _KEY, self.to_dict())
            return
        path = _config_path(tokenizer)
        config = _read_config(path) if path.exists() else {}
        path.write_text(json.dumps({**config, _KEY: self.source}, indent=2, ensure_ascii=False) + "\n", "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that loads as this template."""
        return deepcopy(self.source)

    def to_format(
        self,
        tools: Sequence[Tool] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        *,
        parallel_tool_calls: bool = True,
        reasoning: bool = True,
        prefix: str = "",
    ) -> StructuralTag:
        """A format that keeps a model to outputs which this template reads, with the tools and choice of a request.

        `tool_choice` is "auto", "none", "required", or a tool by name or as an object, which is then called once.
        `prefix` is the prompt, which may have opened a region. Where a delimiter or content cannot be written in one
        way, the error names the field and what it is.
        """
        from dovetail.response_templates.parser import ResponseParser

        name = ResponseParser(self, prefix, on_malformed="keep").open_field
        started = self.fields[name] if name is not None else None
        return conversion.to_format(self, tools, tool_choice, parallel_tool_calls, reasoning, started)

    @property
    def defaults(self) -> dict[str, Any]:
        """A fresh copy of what every message starts from."""
        return deepcopy(self.source.get("defaults", {}))

    @cached_property
    def implicit(self) -> Field | None:
        """The field that takes the text outside of all regions."""
        return next((item for item in self.fields.values() if item.open is None), None)

    @cached_property
    def context(self) -> int:
        """How many characters before itself any delimiter may look at."""
        delimiters = [made for item in self.fields.values() for made in (item.open, item.close) if made is not None]
        return max((delimiter.pattern.context for delimiter in delimiters), default=0)

    @cached_property
    def outside(self) -> Watched:
        """What to watch for outside of all regions: every opening, by name, and the close of the implicit field."""
        regions: list[tuple[Kind, Field]] = []
        watched: list[Delimiter] = []
        for _, item in sorted(self.fields.items()):
            if item.open is not None:
                regions.append(("open", item))
                watched.append(item.open)
        if self.implicit is not None and self.implicit.close is not None:
            regions.append(("close", self.implicit))
            watched.append(self.implicit.close)
        return Watch(watched), regions

    @cached_property
    def inside(self) -> dict[str, Watched]:
        """What to watch for inside each region that was opened: its close, if it has one."""
        return {
            item.name: (Watch([item.close]), [("close", item)]) if item.close is not None else (Watch([]), [])
            for item in self.fields.values()
        }

    def after_anchor(self, prefix: str, limit: float) -> str:
        """What follows the last anchor in the prompt: the part of the message that is written already."""
        end = 0
        try:
            for match in self.anchor.expression.finditer(prefix, timeout=limit):
                end = match.end()
        except TimeoutError:
            raise LimitError(
                f"the start anchor takes more than {limit} s to find",
                "/start_anchor_pattern",
                "simplify the expression",
            ) from None
        return prefix[end:]


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResponseTemplateError(f"the template is not JSON: {error}", "", "correct it") from None


def _config_path(path: str | Path) -> Path:
    path = Path(path)
    return path / "tokenizer_config.json" if path.is_dir() else path


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ResponseTemplateError(f"{path.name} cannot be read: {error}", "", "name a folder or JSON file") from None
    if not isinstance(config, dict):
        raise ResponseTemplateError(f"{path.name} holds no object", "", "name a tokenizer_config.json")
    return config


# Callers pass the same object with every call, as they do to Transformers.
@lru_cache(maxsize=64)
def _load_json(text: str, strict: bool) -> ResponseTemplate:
    source: dict[str, Any] = json.loads(text)
    _check_top(source)
    notes: list[str] = []
    fields = {name: _load_field(name, raw, notes, strict) for name, raw in source["fields"].items()}
    implicit = [name for name, item in fields.items() if item.open is None]
    if len(implicit) > 1:
        raise ResponseTemplateError(
            f"{', '.join(implicit)} have no opening, and text outside of all regions can go to one field only",
            "/fields",
            "give all but one of them open or open_pattern",
        )
    anchor = _delimiter(source, "start_anchor", "")
    if anchor is None:
        raise ResponseTemplateError(
            "the template has no start_anchor", "", "add start_anchor or start_anchor_pattern: what starts the message"
        )
    _check_defaults(source.get("defaults", {}), fields)
    return ResponseTemplate(source, fields, anchor, tuple(notes))


def _check_top(source: dict[str, Any]) -> None:
    if (version := source.get("version", 1)) != 1:
        raise ResponseTemplateError(
            f"the version is {version!r}, and only 1 is known", "/version", "write 1 or drop it"
        )
    if unknown := sorted(set(source) - _TOP_KEYS):
        raise ResponseTemplateError(f"unknown keys: {', '.join(unknown)}", "", f"use {', '.join(sorted(_TOP_KEYS))}")
    if not isinstance(source.get("defaults", {}), dict):
        raise ResponseTemplateError(
            "defaults must be an object", "/defaults", 'write for example {"role": "assistant"}'
        )
    fields = source.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise ResponseTemplateError("fields must be an object with at least one field", "/fields", "add a field")


def _check_defaults(defaults: dict[str, Any], fields: dict[str, Field]) -> None:
    for name, item in fields.items():
        value = defaults.get(name)
        path = f"/defaults/{pointer(name)}"
        if item.join is not None:
            if value is not None and not isinstance(value, str):
                raise ResponseTemplateError("a field with join starts from a text", path, "write a text, or drop it")
        elif item.repeats and name in defaults and not isinstance(value, list):
            raise ResponseTemplateError("a field that repeats starts from a list", path, "write a list, or drop it")


def _load_field(name: str, raw: Any, notes: list[str], strict: bool) -> Field:
    path = f"/fields/{pointer(name)}"
    if not isinstance(raw, dict):
        raise ResponseTemplateError(
            f"the field {name} is a {type(raw).__name__}, not an object", path, "write an object"
        )
    if unknown := sorted(set(raw) - _FIELD_KEYS):
        raise ResponseTemplateError(
            f"the field {name} has unknown keys: {', '.join(unknown)}", path, f"use {', '.join(sorted(_FIELD_KEYS))}"
        )
    kind = raw.get("content", "text")
    content.check_name(kind, f"{path}/content")
    parse = content.make(kind, Arguments(raw.get("content_args", {}), f"{path}/content_args", notes, strict))
    opening, closing = _delimiter(raw, "open", path), _delimiter(raw, "close", path)
    repeats, optional = (
        _truth(raw, key, default, path, notes) for key, default in [("repeats", False), ("optional", True)]
    )
    join = raw.get("join")
    if join is not None and not isinstance(join, str):
        raise ResponseTemplateError(f"join is a {type(join).__name__}, not a text", f"{path}/join", "write a text")
    if join is not None and not repeats:
        raise ResponseTemplateError("join needs repeats", f"{path}/join", 'add "repeats": true')
    shape, each = _load_transform(raw, path, opening, closing)
    return Field(
        name, opening, closing, kind, parse, repeats, join, optional, shape, each, kind not in content.STREAMED
    )


def _truth(raw: dict[str, Any], key: str, default: bool, path: str, notes: list[str]) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        notes.append(f"{path}/{key}: {value!r} is read as {bool(value)}")
    return bool(value)


def _load_transform(
    raw: dict[str, Any], path: str, opening: Delimiter | None, closing: Delimiter | None
) -> tuple[Any, bool]:
    shape, each = raw.get("transform"), raw.get("transform_each", False)
    groups = frozenset[str]().union(*(item.groups for item in (opening, closing) if item is not None))
    if not isinstance(each, bool):
        raise ResponseTemplateError(
            f"transform_each is a {type(each).__name__}, not a boolean", f"{path}/transform_each", "write true or false"
        )
    if each and shape is None:
        raise ResponseTemplateError("transform_each needs a transform", path, "add transform, or drop transform_each")
    if shape is None and groups:
        raise ResponseTemplateError(
            f"the groups {', '.join(sorted(groups))} are captured, and no transform uses them",
            path,
            'add a transform such as {"name": "{name}", "arguments": "{content}"}, or write (?:...) for the groups',
        )
    if shape is not None:
        transform.check(shape, f"{path}/transform", None if each else groups | {"content"})
    return shape, each


def _delimiter(raw: dict[str, Any], key: str, path: str) -> Delimiter | None:
    """`key` with its literals, or `key`_pattern with its regular expression."""
    pattern_key = f"{key}_pattern"
    if key in raw and pattern_key in raw:
        raise ResponseTemplateError(f"{key} and {pattern_key} are both there", path or "/", "drop one of them")
    if key in raw:
        value = raw[key]
        literals = [value] if isinstance(value, str) else value
        if (
            not isinstance(literals, list)
            or not literals
            or not all(isinstance(item, str) and item for item in literals)
        ):
            raise ResponseTemplateError(
                f"{key} must be a text or a list of texts, none of them empty", f"{path}/{key}", "write the delimiter"
            )
        return Delimiter.of_literals(literals)
    if pattern_key not in raw:
        return None
    if not isinstance(raw[pattern_key], str):
        raise ResponseTemplateError(f"{pattern_key} must be a text", f"{path}/{pattern_key}", "write an expression")
    try:
        return Delimiter.of_pattern(raw[pattern_key])
    except regex.error as error:
        raise ResponseTemplateError(
            f"not a regular expression: {error}", f"{path}/{pattern_key}", "correct it"
        ) from None
