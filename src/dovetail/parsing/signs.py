"""Special tokens on a tape of bytes.

A special token that is matched by its id stands on the tape as its text with another first byte, one that no UTF-8 text
has. So offsets stay true, prose that only looks like a marker is none, and `PLAIN` gives the text back.
"""

from __future__ import annotations

import re

_FIRSTS = b"<[]{(|#@$&"
_SIGNS = bytes(range(0xFF, 0xFF - len(_FIRSTS), -1))
_SIGN_OF = dict(zip(_FIRSTS, _SIGNS, strict=True))

PLAIN = bytes.maketrans(_SIGNS, _FIRSTS)
# What is fed as bytes must not look like a sign; what is no UTF-8 stays none.
CLEAN = bytes.maketrans(_SIGNS, b"\xc0" * len(_SIGNS))
SIGN_CLASS = rb"\xf5-\xff"  # for patterns


def signed(token: bytes) -> bytes:
    """A special token as it stands on the tape; one with an unusual first byte is known by its text only."""
    return bytes([_SIGN_OF.get(token[0], token[0])]) + token[1:] if token else token


def either(word: bytes) -> bytes:
    """A pattern for a word, whether its special tokens are matched by id or spelled."""
    return b"".join(_either(byte) for byte in word)


def _either(byte: int) -> bytes:
    plain = re.escape(bytes([byte]))
    return b"[" + plain + bytes([_SIGN_OF[byte]]) + b"]" if byte in _SIGN_OF else plain
