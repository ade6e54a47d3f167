"""The format objects: one frozen model per `type`, with the fields and defaults of the structural-tag language.

A model holds the shape of one object only. What must hold between objects (a tag's begin and its trigger, free text and
its end) is checked by `rules.check`, which `load_format` runs.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, StringConstraints, Tag, ValidationError

from dovetail.formats.explain import format_error
from dovetail.layouts.styles import Layout, Literals, StyleName

_INT32_MAX = 2**31 - 1

# A constraint makes pydantic look into the string: half of a surrogate pair is refused here and not when it is encoded.
Str = Annotated[str, StringConstraints(strict=True, min_length=0)]
FullStr = Annotated[str, StringConstraints(strict=True, min_length=1)]
Bool = Annotated[bool, Strict()]
Count = Annotated[int, Field(strict=True, ge=0, le=_INT32_MAX)]
Minimum = Annotated[int, Field(strict=True, ge=0, le=2**30)]
Limit = Annotated[int, Field(strict=True, ge=-1, le=_INT32_MAX)]
TokenRef = Annotated[
    Annotated[Count, Tag("token:id")] | Annotated[FullStr, Tag("token:text")],
    Discriminator(lambda value: "token:text" if isinstance(value, str) else "token:id"),
]
Style = Annotated[
    Annotated[StyleName, Tag("style:name")]
    | Annotated[Layout, Tag("style:layout")]
    | Annotated[Literals, Tag("style:literals")],
    Discriminator(lambda value: _style_tag(value)),
]
Schema = Annotated[
    Annotated[dict[str, Any], Tag("schema:object")] | Annotated[Bool, Tag("schema:bool")],
    Discriminator(lambda value: "schema:bool" if isinstance(value, bool) else "schema:object"),
]


def _style_tag(value: object) -> str:
    if isinstance(value, Literals) or (isinstance(value, dict) and "quotes" in value):
        return "style:literals"
    return "style:layout" if isinstance(value, dict | Layout) else "style:name"


class FormatModel(BaseModel):
    """What every format object shares: it is frozen, ignores fields it does not know, and equals its JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise format_error(error) from None
        # Written out by `to_dict` although it is a default: most formats cannot be told without it.
        self.__pydantic_fields_set__.add("type")

    # Tells pydantic that nested objects need not pass through this __init__: one call per tree instead of one per node.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that loads as this format, without the fields that were left at their defaults."""
        given = self.model_fields_set
        return {field: _plain(getattr(self, field)) for field in type(self).model_fields if field in given}


def _plain(value: Any) -> Any:
    """A field as JSON; a schema is JSON already, however deep."""
    if isinstance(value, FormatModel):
        return value.to_dict()
    if isinstance(value, Layout | Literals):
        return asdict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


class ConstStringFormat(FormatModel):
    """Exactly this text."""

    type: Literal["const_string"] = "const_string"
    value: Str


class JsonSchemaFormat(FormatModel):
    """A value that a JSON Schema describes, written as JSON, in a model family's parameter style, or as literals.

    While `strict`, an object that declares properties and is silent on additionalProperties is closed. A schema that
    cannot be held exactly is refused, or where `on_inexact` is "widen" held without the keywords that are too much.
    In a parameter style a string may stand between two times `pad`, white space that is no part of it. JSON that is
    `tidy` has white space only where people have it: a space behind a colon, elsewhere one or a line and its indent.
    """

    type: Literal["json_schema"] = "json_schema"
    json_schema: Schema
    style: Style = "json"
    any_order: Bool = False
    max_whitespace_cnt: Count | None = None
    excludes: tuple[FullStr, ...] = ()
    strict: Bool = True
    on_inexact: Literal["raise", "widen"] = "raise"
    pad: Str = ""
    tidy: Bool = False


class QwenXmlParameterFormat(FormatModel):
    """Deprecated spelling of `json_schema` with the style "qwen_xml"."""

    type: Literal["qwen_xml_parameter"] = "qwen_xml_parameter"
    json_schema: Schema


class GrammarFormat(FormatModel):
    """What the rule `root` of an EBNF or GBNF text matches."""

    type: Literal["grammar"] = "grammar"
    grammar: FullStr


class RegexFormat(FormatModel):
    """What a regular expression matches as a whole; an empty one matches the empty text."""

    type: Literal["regex"] = "regex"
    pattern: Str


class AnyTextFormat(FormatModel):
    """Free text without `excludes`, up to the end of the enclosing tag; `max_chars` counts code points."""

    type: Literal["any_text"] = "any_text"
    excludes: tuple[FullStr, ...] = ()
    max_tokens: Count | None = None
    max_chars: Count | None = None


class SequenceFormat(FormatModel):
    """All elements, in order."""

    type: Literal["sequence"] = "sequence"
    elements: Annotated[tuple[Format, ...], Field(min_length=1)]


class OrFormat(FormatModel):
    """Any one of the elements."""

    type: Literal["or"] = "or"
    elements: Annotated[tuple[Format, ...], Field(min_length=1)]


class OptionalFormat(FormatModel):
    """The content or nothing."""

    type: Literal["optional"] = "optional"
    content: Format


class PlusFormat(FormatModel):
    """The content once or more often."""

    type: Literal["plus"] = "plus"
    content: Format


class StarFormat(FormatModel):
    """The content any number of times."""

    type: Literal["star"] = "star"
    content: Format


class RepeatFormat(FormatModel):
    """The content from `min` to `max` times; `max` -1 is unbounded."""

    type: Literal["repeat"] = "repeat"
    min: Minimum
    max: Limit
    content: Format


class TokenFormat(FormatModel):
    """One token, by id or by its text in the vocabulary."""

    type: Literal["token"] = "token"
    token: TokenRef


class ExcludeTokenFormat(FormatModel):
    """Any one token but these and the token that ends the enclosing tag."""

    type: Literal["exclude_token"] = "exclude_token"
    exclude_tokens: tuple[TokenRef, ...] = ()


class AnyTokensFormat(FormatModel):
    """Any number of tokens but these and the token that ends the enclosing tag."""

    type: Literal["any_tokens"] = "any_tokens"
    exclude_tokens: tuple[TokenRef, ...] = ()
    max_tokens: Count | None = None


def _delimiter_kind(value: object) -> str:
    if isinstance(value, str):
        return "delimiter:text"
    return "delimiter:texts" if isinstance(value, list | tuple) else "delimiter:token"


Begin = Annotated[
    Annotated[Str, Tag("delimiter:text")] | Annotated[TokenFormat, Tag("delimiter:token")],
    Discriminator(lambda value: "delimiter:text" if isinstance(value, str) else "delimiter:token"),
]
End = Annotated[
    Annotated[Str, Tag("delimiter:text")]
    | Annotated[Annotated[tuple[Str, ...], Field(min_length=1)], Tag("delimiter:texts")]
    | Annotated[TokenFormat, Tag("delimiter:token")],
    Discriminator(_delimiter_kind),
]


class TagFormat(FormatModel):
    """Begin, content, end; of several ends any one closes the tag, and "" among them makes the end optional."""

    type: Literal["tag"] = "tag"
    begin: Begin
    content: Format
    end: End


class TriggeredTagsFormat(FormatModel):
    """Free text in which a trigger commits to one of the tags that begin with it.

    `text_capture` names the free text alone, as a `capture` around everything could not.
    """

    type: Literal["triggered_tags"] = "triggered_tags"
    triggers: Annotated[tuple[FullStr, ...], Field(min_length=1)]
    tags: Annotated[tuple[TagFormat, ...], Field(min_length=1)]
    at_least_one: Bool = False
    stop_after_first: Bool = False
    excludes: tuple[FullStr, ...] = ()
    text_capture: FullStr | None = None


class TagsWithSeparatorFormat(FormatModel):
    """Tags with a separator between them and no other text."""

    type: Literal["tags_with_separator"] = "tags_with_separator"
    tags: Annotated[tuple[TagFormat, ...], Field(min_length=1)]
    separator: Str
    at_least_one: Bool = False
    stop_after_first: Bool = False


class DispatchFormat(FormatModel):
    """Free text in which a pattern commits to the format beside it."""

    type: Literal["dispatch"] = "dispatch"
    rules: Annotated[tuple[tuple[FullStr, Format], ...], Field(min_length=1)]
    loop: Bool = True
    excludes: tuple[FullStr, ...] = ()


class TokenTriggeredTagsFormat(FormatModel):
    """Free tokens in which a trigger token commits to one of the tags that begin with it."""

    type: Literal["token_triggered_tags"] = "token_triggered_tags"
    trigger_tokens: Annotated[tuple[TokenRef, ...], Field(min_length=1)]
    tags: Annotated[tuple[TagFormat, ...], Field(min_length=1)]
    exclude_tokens: tuple[TokenRef, ...] = ()
    at_least_one: Bool = False
    stop_after_first: Bool = False


class TokenDispatchFormat(FormatModel):
    """Free tokens in which a token commits to the format beside it."""

    type: Literal["token_dispatch"] = "token_dispatch"
    rules: Annotated[tuple[tuple[TokenRef, Format], ...], Field(min_length=1)]
    loop: Bool = True
    exclude_tokens: tuple[TokenRef, ...] = ()


class CaptureFormat(FormatModel):
    """The content, reported under a name by the events of a matcher; captures nest."""

    type: Literal["capture"] = "capture"
    name: FullStr
    content: Format


def _has_token_pattern(value: dict[str, Any]) -> bool:
    """Whether the rules of an untyped dispatch start with a token id."""
    rules = value["rules"]
    first = rules[0] if isinstance(rules, list | tuple) and rules else None
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], int)


# The first row whose fields are all there names an object without a type. Where two types share their fields the
# peers' order decides (sequence before or, optional before star); an object with bounds is never silently an optional.
_UNTYPED = (
    (("begin", "content", "end"), "tag"),
    (("value",), "const_string"),
    (("json_schema",), "json_schema"),
    (("elements",), "sequence"),
    (("triggers", "tags"), "triggered_tags"),
    (("tags", "separator"), "tags_with_separator"),
    (("content", "min", "max"), "repeat"),
    (("content",), "optional"),
    (("rules",), "dispatch"),
    (("excludes",), "any_text"),
)


def _kind(value: Any) -> str | None:
    """The union tag for a format object: "format:" and its type, given or inferred."""
    if isinstance(value, FormatModel):
        return "format:" + value.type
    if not isinstance(value, dict):
        return None
    if "type" in value:
        kind = value["type"]
        return "format:" + kind if isinstance(kind, str) else None
    for fields, name in _UNTYPED:
        if all(field in value for field in fields):
            return "format:token_dispatch" if name == "dispatch" and _has_token_pattern(value) else "format:" + name
    return None


Format = Annotated[
    Annotated[ConstStringFormat, Tag("format:const_string")]
    | Annotated[JsonSchemaFormat, Tag("format:json_schema")]
    | Annotated[QwenXmlParameterFormat, Tag("format:qwen_xml_parameter")]
    | Annotated[GrammarFormat, Tag("format:grammar")]
    | Annotated[RegexFormat, Tag("format:regex")]
    | Annotated[AnyTextFormat, Tag("format:any_text")]
    | Annotated[SequenceFormat, Tag("format:sequence")]
    | Annotated[OrFormat, Tag("format:or")]
    | Annotated[OptionalFormat, Tag("format:optional")]
    | Annotated[PlusFormat, Tag("format:plus")]
    | Annotated[StarFormat, Tag("format:star")]
    | Annotated[RepeatFormat, Tag("format:repeat")]
    | Annotated[TagFormat, Tag("format:tag")]
    | Annotated[TriggeredTagsFormat, Tag("format:triggered_tags")]
    | Annotated[TagsWithSeparatorFormat, Tag("format:tags_with_separator")]
    | Annotated[DispatchFormat, Tag("format:dispatch")]
    | Annotated[TokenFormat, Tag("format:token")]
    | Annotated[ExcludeTokenFormat, Tag("format:exclude_token")]
    | Annotated[AnyTokensFormat, Tag("format:any_tokens")]
    | Annotated[TokenTriggeredTagsFormat, Tag("format:token_triggered_tags")]
    | Annotated[TokenDispatchFormat, Tag("format:token_dispatch")]
    | Annotated[CaptureFormat, Tag("format:capture")],
    Discriminator(_kind),
]


class StructuralTag(FormatModel):
    """A format as a request carries it: the `response_format` of a structural-tag request."""

    type: Literal["structural_tag"] = "structural_tag"
    format: Format


MODELS: tuple[type[FormatModel], ...] = tuple(get_args(member)[0] for member in get_args(get_args(Format)[0]))
StructuralTag.model_rebuild()
for _model in MODELS:
    _model.model_rebuild()
