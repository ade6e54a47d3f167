"""The tokens that must come next, cut as the tokenizer would cut them; an engine appends them without a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dovetail._core import Matcher, Store

Encode = Callable[[str], Sequence[int]]

MAX_FORCED_TOKENS = 4096
# A tokenizer that puts a space before a text puts it before this, which no token spells together with anything else.
_ANCHOR = "\0"


def forced_tokens(matcher: Matcher) -> list[int]:
    """The tokens that must come next; without a tokenizer only those that no other token could take the place of."""
    store = matcher.store
    ahead = matcher.fork()
    tokens: list[int] = []
    while len(tokens) < MAX_FORCED_TOKENS and not ahead.is_complete:
        more = _settled(ahead, store) or _lone(ahead)
        taken = ahead.accept_tokens(more)
        tokens += more[:taken]
        if not more or taken < len(more):
            break
    return tokens


def cut(text: str, store: Store, encode: Encode) -> list[int]:
    """The tokens of a text that stands at the border of a token; none where the tokenizer says something else."""
    data = text.encode()
    unanchored = list(encode(text))
    if _spelled(unanchored, store) == data:
        return unanchored
    anchored = list(encode(_ANCHOR + text))
    for start in range(1, min(len(anchored), 4) + 1):
        if _spelled(anchored[:start], store).endswith(_ANCHOR.encode()):
            return anchored[start:] if _spelled(anchored[start:], store) == data else []
    return []


def settled(text: str, store: Store, encode: Encode) -> list[int]:
    """The tokens at the beginning of a text that stay the same whatever comes after the text."""
    data = text.encode()
    same = cut(text, store, encode)
    # A token that goes on behind the text begins at one of these places, and what is before it is cut by itself.
    for at in range(max(0, len(data) - store.longest_token + 1), len(data)):
        if not same:
            break
        if store.is_prefix(data[at:]) and _is_text(data[:at]):
            same = _common(same, cut(data[:at].decode(), store, encode))
    return same


def _settled(matcher: Matcher, store: Store) -> list[int]:
    encode: Encode | None = getattr(store, "encode", None)
    data = matcher.forced()
    if encode is None or not data:
        return []
    text = data.decode("utf-8", "ignore")
    return settled(text, store, encode) if data.startswith(text.encode()) else []


def _spelled(tokens: Sequence[int], store: Store) -> bytes:
    return b"".join(map(store.token_bytes, tokens)) if all(token < store.size for token in tokens) else b"\xff"


def _lone(matcher: Matcher) -> list[int]:
    """The only token that the mask allows, if it is only one."""
    mask = np.zeros(matcher.mask_words, dtype=np.uint32)
    matcher.fill_mask(mask)
    words = np.flatnonzero(mask)
    if len(words) != 1:
        return []
    bits = int(mask[words[0]])
    return [int(words[0]) * 32 + bits.bit_length() - 1] if bits & (bits - 1) == 0 else []


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _common(left: list[int], right: list[int]) -> list[int]:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return left[:same]
