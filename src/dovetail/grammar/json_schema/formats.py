"""The values of `format` that are regular languages, as patterns; a format that is not listed says nothing.

Hostnames longer than 253 characters are invalid, which one pattern cannot count beside the length of each label: names
of many long labels are therefore left out.
"""

from __future__ import annotations

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,%d}[A-Za-z0-9])?"
_LONG, _MIDDLE, _SHORT = _LABEL % 61, _LABEL % 39, _LABEL % 22
_HOST = rf"(?:{_LONG}(?:\.{_LONG}){{0,2}}|{_MIDDLE}(?:\.{_MIDDLE}){{3,5}}|{_SHORT}(?:\.{_SHORT}){{6,9}})"

_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = rf"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?{_OFFSET}|23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))"

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
_PCHAR = rf"(?:[{_UNRESERVED}{_SUB}:@]|{_ESCAPED})"
_PATH = rf"(?:/{_PCHAR}*)*"
_LITERAL = rf"\[(?:{_IPV6}|[Vv][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB}:]+)\]"
_AUTHORITY = (
    rf"(?:(?:[{_UNRESERVED}{_SUB}:]|{_ESCAPED})*@)?(?:{_LITERAL}|(?:[{_UNRESERVED}{_SUB}]|{_ESCAPED})*)(?::[0-9]*)?"
)
_ROOTED = rf"//{_AUTHORITY}{_PATH}|/(?:{_PCHAR}+{_PATH})?"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_URI = rf"{_SCHEME}(?:{_ROOTED}|{_PCHAR}+{_PATH})?{_TAIL}"
_RELATIVE = rf"(?:{_ROOTED}|(?:[{_UNRESERVED}{_SUB}@]|{_ESCAPED})+{_PATH})?{_TAIL}"

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+"
_TOKENS = "(?:/(?:[^/~]|~[01])*)*"

_PATTERNS = {
    "date": _DAY,
    "time": _TIME,
    "date-time": f"{_DAY}[Tt]{_TIME}",
    "duration": f"P(?:[0-9]+W|{_DATES}(?:{_CLOCK})?|{_CLOCK})",
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_HOST}",
    "hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "json-pointer": _TOKENS,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_TOKENS})",
}

FORMATS = {name: f"^(?:{pattern})$" for name, pattern in _PATTERNS.items()}

# Formats that no automaton can hold exactly.
UNSUPPORTED = frozenset(
    ("idn-email", "idn-hostname", "iri", "iri-reference", "regex", "ecmascript-regex", "uri-template")
)
