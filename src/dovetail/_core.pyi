"""The automaton of dovetail: grammars in, token masks and captures out."""

from collections.abc import Sequence

from dovetail.engine.events import CaptureEvent
from dovetail.grammar.ir import Rule


class Store:
    """
    The tokens of one tokenizer and everything that grammars over them share.
    """

    def __init__(self, tokens: Sequence[bytes], special: Sequence[tuple[str, int]], stops: Sequence[int], cache_bytes: int) -> None: ...

    def compile(self, rule: Rule) -> Grammar:
        """Compile a dovetail.grammar.ir.Rule."""

    def load(self, saved: bytes) -> Grammar:
        """Compile what Grammar.save gave."""

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to the output."""

    def is_prefix(self, data: bytes) -> bool:
        """Whether some token that is text goes on behind these bytes."""

    @property
    def size(self) -> int: ...

    @property
    def longest_token(self) -> int: ...

    @property
    def vocabulary_bytes(self) -> int: ...

    @property
    def automaton_bytes(self) -> int: ...

    @property
    def mask_bytes(self) -> int: ...

    def find(self, text: str) -> int | None:
        """The id of the token with this text, or None."""

class Grammar:
    """A compiled grammar; immutable and shared by threads."""

    def save(self) -> bytes:
        """The grammar as bytes that Store.load takes."""

    def matcher(self, stops: Sequence[int] = [], only: bool = False) -> Matcher:
        """
        A matcher at the start of an output, with stop tokens beside the vocabulary's or in their place.
        """

class Matcher:
    """The state of one generation."""

    def fill_mask(self, mask: object, row: int = 0) -> None:
        """Overwrite a row of `mask`: bit t is 1 when token t may come next."""

    def accept(self, token: int) -> bool:
        """
        Take a token; False, and no change, where it may not come next. A MatcherError where there is no such token.
        """

    def accept_bytes(self, data: bytes | str) -> bool:
        """Take all of these bytes or none of them; a string counts as its UTF-8."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        """
        Take tokens in a row; how many, as none is taken behind one that may not come or does not exist, or behind the end.
        """

    def validate(self, tokens: Sequence[int]) -> int:
        """
        How many of these tokens could be accepted in a row; an id that does not exist ends it. Nothing changes.
        """

    def rollback(self, steps: int) -> None:
        """Take back that many accepted tokens or pieces of bytes."""

    def reset(self) -> None:
        """Go back to the start."""

    def fork(self) -> Matcher:
        """An independent copy."""

    def forced(self) -> bytes:
        """The bytes that must come next, whatever the model wants."""

    def forced_tokens(self) -> list[int]:
        """
        The tokens that must come next, cut as the tokenizer would cut them whatever follows.
        """

    def events(self) -> list[CaptureEvent]:
        """Captures as events whose spans tile the output so far."""

    @property
    def is_complete(self) -> bool:
        """The output so far may end here."""

    @property
    def is_finished(self) -> bool:
        """A stop token has ended the output."""

    @property
    def steps(self) -> int:
        """How many steps can be rolled back."""

    @property
    def position(self) -> int:
        """Bytes of output so far."""

    @property
    def mask_words(self) -> int:
        """32-bit words in a mask row."""

    @property
    def store(self) -> Store:
        """What its grammar is compiled for."""

def fingerprint(data: object) -> tuple[tuple[int, int], int]:
    """
    A hash of JSON-like data, equal for equal data within one process, and how many values it holds.
    """

def has_names(data: object, names: tuple[str, ...]) -> bool:
    """
    Whether a dictionary inside JSON-like data has one of the names for a key, with no dictionary behind it.
    """

def shortcuts() -> list[str]:
    """
    The shortcuts of the mask walk by name, in the order of the bits that a Store takes.
    """

def fill_masks(matchers: Sequence[Matcher], mask: object, rows: Sequence[int] | None = None) -> None:
    """
    Fill row i, or rows[i], for matcher i, with ones where it has finished.
    """
