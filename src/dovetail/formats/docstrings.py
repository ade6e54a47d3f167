"""What a docstring says of a function and of each parameter, in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re

_PARAMETERS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters")
_OTHERS = ("returns", "return", "raises", "yields", "example", "examples", "note", "notes", "see also", "warnings")
_RULE = re.compile(r"-{3,}")
_SPHINX = re.compile(r":(?P<kind>\w+)(?:\s+[^:]*?)?(?:\s*\*{0,2}(?P<name>\w+))?\s*:\s*(?P<text>.*)")
_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*(?::(?P<text>.*))?")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, without the sections for parameters, results and the like, and that of each parameter."""
    lines = inspect.cleandoc(text).splitlines()
    description: list[str] = []
    described: dict[str, str] = {}
    section, name, indent = "description", "", -1
    for at, line in enumerate(lines):
        bare, depth = line.strip(), len(line) - len(line.lstrip())
        is_ruled = at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1].strip()) is not None
        heading = bare.removesuffix(":").lower() if depth == 0 and (bare.endswith(":") or is_ruled) else ""
        if heading in _PARAMETERS or heading in _OTHERS:
            section, name, indent = "ruled" if is_ruled else "plain", "", -1
            section = section if heading in _PARAMETERS else "others"
        elif (field := _SPHINX.fullmatch(bare)) and field["kind"] in _SPHINX_KINDS:
            section, name = "plain", field["name"] or "" if _SPHINX_KINDS[field["kind"]] else ""
            indent = depth
            if name:
                described[name] = field["text"].strip()
        elif section == "description":
            description.append(line)
        elif section == "others" or not bare or _RULE.fullmatch(bare):
            continue
        elif indent < 0 or depth <= indent:
            indent = depth
            entry = _ENTRY.fullmatch(bare)
            name = entry["name"] if entry else ""
            if entry:
                # NumPy writes the type behind the colon, and the description below.
                described[name] = "" if section == "ruled" else (entry["text"] or "").strip()
        elif name:
            described[name] = f"{described[name]} {bare}".strip()
    return "\n".join(description).strip(), {name: text for name, text in described.items() if text}


# The fields of Sphinx, and whether they describe a parameter.
_SPHINX_KINDS = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword"), True),
    **dict.fromkeys(("type", "return", "returns", "rtype", "raise", "raises", "except", "exception"), False),
}
