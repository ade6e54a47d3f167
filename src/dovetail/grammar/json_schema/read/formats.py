"""The values of `format` that are regular languages, as patterns; a format that is not listed says nothing.

Where the definition is not regular, or too large for one automaton, the pattern holds a part of it and nothing invalid:

- Hostnames longer than 253 characters are invalid, which one pattern cannot count beside the length of each label:
  names of many long labels are left out. So are labels with hyphens in their third and fourth place, such as `xn--`:
  whether what follows is well-formed Punycode is not regular.
- The domain of an `idn-email` has letters of scripts in which any sequence of them is a valid label.
- A leap second is a moment in UTC; it may be written with every offset in steps of a quarter of an hour.
"""

from __future__ import annotations


def _label(chars: str, marks: str, most: int) -> str:
    """A label of a hostname of up to `most` characters, with no hyphen at its ends or in its third and fourth place."""
    end, inner = f"[{chars}{marks}]", f"[{chars}{marks}-]"
    third = f"{inner}{end}(?:{inner}{{0,{most - 4}}}{end})?"
    hyphen = f"{inner}-{end}(?:{inner}{{0,{most - 5}}}{end})?"
    return f"[{chars}](?:{end}|{third}|{hyphen})?"


def _hostname(chars: str, marks: str, labels: tuple[tuple[int, int, int], ...]) -> str:
    """A name of labels; each way to share the length out says how long they are, and the fewest and most behind one."""
    sizes = ((_label(chars, marks, size), low, high) for size, low, high in labels)
    ways = (rf"{label}(?:\.{label}){{{low},{high}}}" for label, low, high in sizes)
    return f"(?:{'|'.join(ways)})"


_HOST = _hostname("A-Za-z0-9", "", ((63, 0, 2), (41, 3, 5), (24, 6, 9)))
# Latin and Cyrillic small letters, kana, ideographs and Hangul syllables: valid in any order, written left to right.
_LETTERS = r"a-z0-9\u00DF-\u00F6\u00F8-\u00FF\u0430-\u045F\u3041-\u3096\u30A1-\u30FA\u4E00-\u9FFF\uAC00-\uD7A3"
# Such a letter takes up to four characters in the ASCII form of its label, which may have 63.
_IDN_HOST = _hostname(_LETTERS, r"\u0300-\u033F", ((14, 0, 3),))

_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def _leap_seconds() -> str:
    """23:59:60 in UTC, as the clock shows it at each offset."""
    fraction = r":60(?:\.[0-9]+)?"
    ways = [f"23:59{fraction}[Zz]"]
    for local in range(14, 24 * 60, 15):
        ahead, behind = (local + 1) % (24 * 60), 24 * 60 - 1 - local
        shown = [f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (local, ahead, behind)]
        ways.append(rf"{shown[0]}{fraction}(?:\+{shown[1]}|-{shown[2]})")
    return "|".join(ways)


_TIME = rf"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?{_OFFSET}|{_leap_seconds()})"

_CLOCK = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DATES = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = (
    "(?:"
    + "|".join(
        [rf"(?:{_H16}:){{6}}{_LS32}", rf"::(?:{_H16}:){{5}}{_LS32}"]
        + [rf"(?:(?:{_H16}:){{0,{n}}}{_H16})?::(?:{_H16}:){{{4 - n}}}{_LS32}" for n in range(5)]
        + [rf"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}", rf"(?:(?:{_H16}:){{0,6}}{_H16})?::"]
    )
    + ")"
)

_ESCAPED = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~\-"
_SUB = r"!$&'()*+,;="
# What an IRI may hold beyond ASCII: everywhere, and in its query only (RFC 3987).
_UCS = r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF" + "".join(
    rf"\U{plane:04X}{'1000' if plane == 14 else '0000'}-\U{plane:04X}FFFD" for plane in range(1, 15)
)
_PRIVATE = r"\uE000-\uF8FF\U000F0000-\U000FFFFD\U00100000-\U0010FFFD"


def _references(more: str, private: str) -> tuple[str, str]:
    """Absolute identifiers of resources and relative ones, in which `more` characters may stand as themselves."""
    unreserved = _UNRESERVED + more
    char = rf"(?:[{unreserved}{_SUB}:@]|{_ESCAPED})"
    path = rf"(?:/{char}*)*"
    literal = rf"\[(?:{_IPV6}|[Vv][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB}:]+)\]"
    user, name = rf"(?:(?:[{unreserved}{_SUB}:]|{_ESCAPED})*@)?", rf"(?:[{unreserved}{_SUB}]|{_ESCAPED})*"
    rooted = rf"//{user}(?:{literal}|{name})(?::[0-9]*)?{path}|/(?:{char}+{path})?"
    tail = rf"(?:\?(?:{char}|[/?{private}])*)?(?:#(?:{char}|[/?])*)?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{rooted}|{char}+{path})?{tail}"
    return absolute, rf"(?:{rooted}|(?:[{unreserved}{_SUB}@]|{_ESCAPED})+{path})?{tail}"


_URI, _RELATIVE = _references("", "")
_IRI, _IRI_RELATIVE = _references(_UCS, _PRIVATE)

_TEXT = rf"(?:[!#$&-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{_ESCAPED})"
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE = rf"(?:{_TEXT}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"


def _mailbox(more: str, most: int) -> str:
    """The local part of an address and its at sign: words, or a text in quotes, of up to `most` characters."""
    word = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~\-{more}]+"
    return rf'(?:(?![^@]{{{most + 1}}}){word}(?:\.{word})*|"[ !#-\[\]-~{more}]{{0,{most - 2}}}")@'


# An address has at most 254 characters, so that the name behind 64 and an at sign has fewer than one alone.
_MAIL_HOST = _hostname("A-Za-z0-9", "", ((62, 0, 2), (30, 3, 5), (17, 6, 9)))
_ADDRESS = rf"\[(?:{_IPV4}|IPv6:{_IPV6})\]"
# A local part has at most 64 bytes, which non-ASCII characters take up to four of.
_WIDE = (("", 64), (r"\u0080-\u07FF", 32), (r"\u0080-\uFFFF", 21), (r"\u0080-\U0010FFFF", 16))
_LOCAL = "|".join(_mailbox(more, most) for more, most in _WIDE)

_TOKENS = "(?:/(?:[^/~]|~[01])*)*"

_PATTERNS = {
    "date": _DAY,
    "time": _TIME,
    "date-time": f"{_DAY}[Tt]{_TIME}",
    "duration": f"P(?:[0-9]+W|{_DATES}(?:{_CLOCK})?|{_CLOCK})",
    "email": f"{_mailbox('', 64)}(?:{_MAIL_HOST}|{_ADDRESS})",
    "idn-email": f"(?:{_LOCAL})(?:{_MAIL_HOST}|{_IDN_HOST}|{_ADDRESS})",
    "hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "uri-template": _TEMPLATE,
    "iri": _IRI,
    "iri-reference": f"(?:{_IRI}|{_IRI_RELATIVE})",
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "json-pointer": _TOKENS,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_TOKENS})",
}

# Formats that no automaton can hold.
UNSUPPORTED = frozenset(("idn-hostname", "regex"))
FORMATS = {name: f"^(?:{pattern})$" for name, pattern in _PATTERNS.items()}
