"""How the arguments of a call are marked up one by one, as data: a style is a row of `Layout`."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("string", "number", "boolean", "null", "object", "array")

Middle = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The markup around one argument: `begin`, the key, what `middle` says for the kind of value, the value, the end.

    The end is `stop`, at which raw text ends, and `tail`, where {} is the key. Whitespace may stand between the parts
    of a middle. Where `item` is given, objects and arrays inside are marked up too, and it takes the place of begin and
    key for an item of an array; elsewhere they are JSON.
    """

    begin: str
    middle: dict[str, Middle]
    stop: str
    tail: str = ""
    item: str = ""
    after_key: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    other_keys: str = "names"  # the keys that a schema need not declare: names, any, or none
    python: tuple[str, ...] = ()  # the kinds of value that Python's spelling is taken for too, such as True
    quoted: bool = False  # strings are JSON too, not raw text

    def __post_init__(self) -> None:
        missing = [kind for kind in KINDS if not self.middle.get(kind)]
        if missing or not self.stop:
            raise ValueError(f"the markup says nothing about {missing[0] if missing else 'stop'}")

    def __hash__(self) -> int:
        middles = tuple(self.middle.items())
        return hash((self.begin, middles, self.stop, self.tail, self.item, self.after_key, self.python, self.quoted))

    def key(self, name: str) -> str:
        """A key as it stands in the markup."""
        for char, escape in self.escapes:
            name = name.replace(char, escape)
        return name
