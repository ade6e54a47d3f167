"""Structured output for language models.

structural tag, JSON Schema, regex, EBNF --formats--> Format --grammar--> rules over bytes and tokens
tokenizer --engine--> Vocabulary
model family + request --dialects--> Format
rules + Vocabulary --compile--> CompiledGrammar --matcher()--> Matcher

each step: Matcher --fill_mask--> bits over the vocabulary --> sampler --> token --accept--> Matcher --> events
each chunk: text --StreamParser--> events --> Message
prompt + type --generate--> a value of the type
messages + functions --call--> calls that are made, and an answer
prompt + schema + tools --run--> a model works through the tools --> a value that fits the schema
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.deferred import deferred

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dovetail.public import *  # noqa: F403 - the names are public as they are there
    from dovetail.public import __all__ as __all__
else:
    __getattr__ = deferred(__name__, "public")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
