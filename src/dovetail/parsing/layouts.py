"""The pieces from which a turn is laid out, as data: what formats are made of and what readers follow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from dovetail.layouts.styles import Layout, Literals, TaggedStyle


class Field(Enum):
    """What a call says beside its markup."""

    NAME = "name"
    ID = "id"
    ARGUMENTS = "arguments"


NAME, ID, ARGUMENTS = Field.NAME, Field.ID, Field.ARGUMENTS


@dataclass(frozen=True, slots=True)
class Quoted:
    """A call syntax: `begin`, `key` `assign` value joined by `separator`, `end`; values are between quotes as they are.

    A value ends at the first quote behind which the separator or the end of the arguments stands. Values of the kinds
    `python` are spelled as Python spells them.
    """

    begin: str
    end: str
    assign: str
    separator: str
    quote: str
    python: tuple[str, ...] = ()


ArgumentStyle = Literal["json"] | TaggedStyle | Layout | Literals | Quoted


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One JSON object: keys, each with the field or the constant string that is its value, in the order written.

    Read in any order. Where `inside` is given, name and arguments stand in an object of their own under that key.
    `spelling` is how an object opens, what separates its members, what follows a key, and how it closes.
    """

    fields: tuple[tuple[str, Field | str], ...] = (("name", NAME), ("arguments", ARGUMENTS))
    inside: str = ""
    spelling: tuple[str, str, str, str] = ("{", ", ", ": ", "}")
    bare_id: bool = False  # the id is a number, without quotes


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """One JSON object whose only key is the name of the tool and whose value is the arguments."""


@dataclass(frozen=True, slots=True)
class TaggedCall:
    """Fields with literal text between them, and the style in which the arguments are written.

    In a tagged style each value is written between `pad`, which belongs to the markup, and `after` follows each
    parameter. Texts in the arguments hold none of `excludes`. Where `cdata`, a value may stand between `<![CDATA[`
    and `]]>`, whatever it holds; that is only read.
    """

    parts: tuple[str | Field, ...]
    arguments: ArgumentStyle = "json"
    pad: str = ""
    after: str = ""
    excludes: tuple[str, ...] = ()
    cdata: bool = False


WholeCall = JsonCall | KeyedCall  # one JSON text, whose markup follows from the class
CallLayout = WholeCall | TaggedCall


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """One way in which a family calls tools: a section with calls, each between `call_begin` and `call_end`.

    A family without sections leaves `begin` and `end` empty, and its calls stand in free text, joined by `separator`
    where nothing else is between them. A JSON array of calls is a section that begins with "[" and ends with "]".
    Free text that completes `trigger` has begun a section (or a call).
    """

    call: CallLayout
    call_begin: str = ""
    call_end: str = ""
    begin: str = ""
    end: str = ""
    separator: str = ""
    trigger: str = ""  # by default `begin`, or else `call_begin`
    named: bool = False  # a trigger alone is prose: only with the name of a tool behind it has a call begun
    lead: str = ""  # written before the first call where text is not free: the family never starts with `begin` itself
    spacing: str = ""  # written between content and the first call
    tools: Literal["all", "function", "builtin"] = "all"
    tolerated: bool = False  # models write it and it is read, but no format asks for it
    id_pattern: str = ""  # a regular expression for the field ID
    id_template: str = "{id}"  # the id of a call from its fields `id` and `name`
    first_id: int = 0  # calls without an id of their own are numbered from here
    runs: bool = False  # calls follow each other in one block, where blocks are joined by `Turn.between`
    also_between: tuple[str, ...] = ()  # what models write between calls beside `separator`; only read
    max_whitespace: int | None = None  # how much white space the JSON of the arguments holds in one place, at most
    offered_only: bool = False  # a call of a tool that is not there is left out, as the engines of the family do
    checked: bool = False  # a call that its tool could not take is text; so calls are told whole, not as they come

    @property
    def opens_with(self) -> str:
        """The text at which free text has become a call."""
        return self.trigger or self.begin or self.call_begin

    @property
    def value_ends(self) -> tuple[str, ...]:
        """The texts that end a quoted value: its quote with the separator, or with what closes arguments and call."""
        style = self.call.arguments if isinstance(self.call, TaggedCall) else None
        if not isinstance(style, Quoted):
            return ()
        behind = self.call_end.strip()
        rests = [behind] if behind else [text.strip() for text in (self.separator, self.end)]
        closed = [style.quote + style.end + rest for rest in rests if rest] or [style.quote + style.end]
        return tuple(dict.fromkeys((style.quote + style.separator.strip(), *closed)))


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A block of reasoning before everything else.

    `opened_by` says who writes `start` when reasoning is on: the "prompt" (so that the output begins inside the
    block), the "model", or "either". `pad` is what the family writes inside the markers at both ends of the text,
    `after` what must follow the block, `skipped` what the model writes instead of a block when reasoning is off, and
    `empty` how a block without reasoning may be written otherwise than as a block.
    """

    start: str
    end: str
    opened_by: Literal["prompt", "model", "either"] = "prompt"
    pad: str = ""
    after: str = ""
    skipped: str = ""
    empty: str = ""
    bare_end: bool = False  # `end` alone, without a block, also says that there is no reasoning
    ends_at_calls: bool = False  # models of the family call tools without closing the block, so it holds no trigger
    open_at_calls: bool = False  # before calls the end is not written: what opens them closes the block
    presumed: bool = False  # the prompt opens the block unless told otherwise: output that tells nothing is reasoning
    others: tuple[tuple[str, str], ...] = ()  # other pairs of `start` and `end` that models write; only read


@dataclass(frozen=True, slots=True)
class Content:
    """Plain text (no markers), or a block between the first `begin` and one of `ends`.

    `begins` beside the first are other spellings of the same block, and `notes` begin blocks that are content too, said
    on the way to a call. Where `always`, the block is there even when it is
    empty; elsewhere a turn with calls may leave it out. Where `optional`, the text may also stand without its markers;
    where both, the block is there before calls, and only there. `marks` are pairs of how markup inside the text, and
    inside reasoning, begins and ends: it says nothing.
    Where `prompt_opens`, the prompt has written the first `begin` when reasoning is off.
    """

    begins: tuple[str, ...] = ("",)
    ends: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    always: bool = False
    optional: bool = False
    marks: tuple[tuple[str, str], ...] = ()
    prompt_opens: bool = False

    @property
    def wrapped(self) -> bool:
        """Whether content stands between markers."""
        return self.begins != ("",)


@dataclass(frozen=True, slots=True)
class Turn:
    """What surrounds the output (`start`, `end`), joins its blocks (`between`) and closes it (`closing`).

    White space at the start of `end` belongs to the markup. `other_ends` end the turn as well. `opened` is what the
    prompt writes of the first block, where that is not reasoning.
    """

    start: str = ""
    end: str = ""
    between: str = ""
    closing: str = ""
    other_ends: tuple[str, ...] = ()
    opened: str = ""
