"""Structured output for language models.

structural tag, JSON Schema, regex, EBNF --formats--> Format --grammar--> rules over bytes and tokens
tokenizer --engine--> Vocabulary
rules + Vocabulary --compile--> CompiledGrammar --matcher()--> Matcher

each step: Matcher --fill_mask--> bits over the vocabulary --> sampler --> token --accept--> Matcher --> events
"""

__version__ = "0.1.0"
