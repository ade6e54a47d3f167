# What nanobind's stubgen cannot know: types of arguments that the binding takes as plain objects, and of Python results.
Store.__init__$:
    def __init__(self, tokens: Sequence[bytes], special: Sequence[tuple[str, int]], stops: Sequence[int], cache_bytes: int) -> None: ...

Store.compile$:
    \from dovetail.grammar.ir import Rule
    def compile(self, rule: Rule) -> Grammar:
        \doc

Store.find$:
    def find(self, text: str) -> int | None:
        \doc

Matcher.accept_bytes$:
    def accept_bytes(self, data: bytes | str) -> bool:
        \doc

Matcher.forced_tokens$:
    def forced_tokens(self) -> list[int]:
        \doc

Matcher.events$:
    \from dovetail.engine.events import Event
    def events(self) -> list[Event]:
        \doc

has_names$:
    def has_names(data: object, names: tuple[str, ...]) -> bool:
        \doc

Glance.__init__$:
    \from collections.abc import Collection, Sequence
    \from typing import Any
    \from dovetail.grammar.ir import Node
    def __init__(self, by_type: dict[str, Node], key_ends: dict[int, Any], lists: dict[str, Node], anything: Node, ws: tuple[Node, ...], comma: tuple[Node, ...], colon: Node, excludes: bool) -> None: ...

Glance.value$:
    def value(self, lowering: object, schema: dict[str, Any], where: tuple[Any, ...]) -> Node:
        \doc

Glance.declared$:
    def declared(self, lowering: object, schema: dict[str, Any], where: tuple[Any, ...]) -> Node | None:
        \doc

Glance.next$:
    def next(self, lowering: object) -> tuple[Rule, list[Any]] | None:
        \doc

Glance.freely$:
    def freely(self, names: list[str], values: list[Node], needed: Collection[str], absent: Collection[str], open: bool) -> Node:
        \doc
