"""A long walk takes whole subtrees where every text of some characters goes on, and only there."""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.grammar.ir import Alt, Chars, Lit, Rule, Seq, star

DIGITS, CAPITALS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def test_characters_that_lead_elsewhere_stay_unsafe_when_one_of_them_is_given_up() -> None:
    """After a digit no `A` may come, so `A` is given up; the other capitals still ask for an exclamation mark."""
    most = Chars(((0x30, 0x39), (0x42, 0x5A), (0x61, 0x7A)))
    rest = Alt((Seq((Chars(((0x30, 0x39),)), star(most))), Seq((Chars(((0x41, 0x5A),)), Lit(b"!")))))
    any_two = Seq((Chars(((0x30, 0x5A),)), Chars(((0x30, 0x5A),)), Lit(b".")))  # makes the walk long enough
    rule = Rule("root", Alt((Seq((Lit(b"a"), any_two)), Seq((Lit(b"x"), rest)))))
    letters = DIGITS + CAPITALS[1:]
    words = [f"{head}{first}{second}".encode() for head in "ax" for first in letters for second in letters]
    vocabulary = dt.Vocabulary([bytes([byte]) for byte in range(256)] + words)
    matcher = dt.compile(rule, vocabulary).matcher()
    mask = np.zeros((256 + len(words) + 31) // 32, dtype=np.int32)
    matcher.fill_mask(mask)
    for place, word in enumerate(words, 256):
        allowed = bool(int(mask[place >> 5]) >> (place & 31) & 1)
        assert allowed == (word[:1] == b"a" or chr(word[1]) in DIGITS)
        assert allowed == (matcher.validate([place]) == 1)
