"""An extension of griffe: what the reference makes of modules and of format objects."""

from __future__ import annotations

from typing import Any

import griffe

_FORMATS = "dovetail.formats.models"


class Fields(griffe.Extension):
    """Lists the fields of formats in place of `**fields`, and keeps one paragraph of each module."""

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        """Keep of a module's docstring what says what it is; the drawing below is for those who read the file."""
        if mod.docstring:
            mod.docstring.value = mod.docstring.value.partition("\n\n")[0]

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Write out the fields of a format object."""
        if cls.parent is None or cls.parent.path != _FORMATS or cls.name == "FormatModel" or not cls.bases:
            return
        given = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
        given += [
            griffe.Parameter(
                field.name, annotation=field.annotation, kind=griffe.ParameterKind.keyword_only, default=field.value
            )
            for field in cls.attributes.values()
            if field.annotation is not None and field.name != "type"
        ]
        cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*given)))
