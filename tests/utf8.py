"""Half-read characters."""

from __future__ import annotations

from dovetail.grammar import ir


def char_length(first: int) -> int:
    """How many bytes a character has that begins with this one."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def alike(char: bytes) -> bytes:
    """One of the half characters that can go on in the same ways, so that there are few states."""
    length = char_length(char[0])
    if len(char) == length:
        return b""
    if len(char) > 1 or char[0] not in b"\xe0\xed\xf0\xf4":
        return {2: b"\xc2", 3: b"\xe1\x80", 4: b"\xf1\x80\x80"}[length][: len(char)]
    return char


def begins_char(read: bytes, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Whether `read` is, or begins, the UTF-8 form of a character in `ranges`."""
    low, high = code_points(read)
    scalars = ((0, 0xD7FF), (0xE000, ir.MAX_CODE_POINT))
    return any(max(low, begin, a) <= min(high, end, b) for begin, end in ranges for a, b in scalars)


def code_points(read: bytes) -> tuple[int, int]:
    """The first and the last character that begin with these bytes; the first is larger where there is none."""
    first = read[0]
    if 0x80 <= first < 0xC2 or first > 0xF4 or not all(0x80 <= byte <= 0xBF for byte in read[1:]):
        return 1, 0
    length = char_length(first)
    low = high = first if length == 1 else first & (0x7F >> length)
    for index in range(1, length):
        low = low << 6 | (read[index] & 0x3F if index < len(read) else 0)
        high = high << 6 | (read[index] & 0x3F if index < len(read) else 0x3F)
    return max(low, (0, 0, 0x80, 0x800, 0x10000)[length]), min(high, ir.MAX_CODE_POINT)
