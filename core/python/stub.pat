# What nanobind's stubgen cannot know: types of arguments that the binding takes as objects of any type, and of Python results.
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
    \from dovetail.engine.events import CaptureEvent
    def events(self) -> list[CaptureEvent]:
        \doc

has_names$:
    def has_names(data: object, names: tuple[str, ...]) -> bool:
        \doc
