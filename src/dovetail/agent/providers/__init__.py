"""Models behind their interfaces.

ProviderOptions --connect--> Provider --stream(Request)--> deltas

retrying.py    attempts one after the other, with pauses between them
chat.py        a run's turns as chat messages
strict.py      which schemas a service can enforce by itself
openai.py anthropic.py gemini.py    the services, through their own clients
local.py       models in this process, held to the tools by a grammar; the embedded speaker among them
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dovetail.agent.protocols import Provider
from dovetail.agent.types import ProviderError, ProviderOptions

__all__ = ["NAMES", "configured", "connect"]

NAMES = ("openai", "anthropic", "gemini", "local", "speaker")

# What the environment calls the keys, the model and the address of each service.
_ENVIRONMENT = {
    "openai": (("OPENAI_API_KEY",), "OPENAI_MODEL", "OPENAI_BASE_URL"),
    "anthropic": (("ANTHROPIC_API_KEY",), "ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL"),
    "gemini": (("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GEMINI_MODEL", "GOOGLE_GEMINI_BASE_URL"),
}
_NOTICE = (
    "No model is configured, so the embedded speaker answers. It is not a language model: it says random things that "
    "fit the schema. Name a model with --model, or set a key and a model in the environment.\n"
)


def configured(options: ProviderOptions, environ: Mapping[str, str] = os.environ) -> ProviderOptions:
    """The options with their provider: the one asked for, or what model and environment tell, or the speaker."""
    name, model = options.name, options.model
    if not name:
        if model and Path(model).is_dir():
            name = "local"
        elif model in ("", "speaker") and not options.base_url:
            name = "speaker" if model else next(filter(lambda n: _is_ready(n, environ), _ENVIRONMENT), "speaker")
        else:
            services = {"claude": "anthropic", "gemini": "gemini"}
            name = next((known for start, known in services.items() if model.startswith(start)), "openai")
    if name not in NAMES:
        raise ProviderError(f"there is no provider {name!r}: use one of {', '.join(NAMES)}")
    if name in _ENVIRONMENT:
        keys, model_of, url_of = _ENVIRONMENT[name]
        options = replace(
            options,
            api_key=options.api_key or next((environ[key] for key in keys if environ.get(key)), ""),
            model=model or environ.get(model_of, ""),
            base_url=options.base_url or environ.get(url_of, ""),
        )
        if not options.model:
            raise ProviderError(f"no model of {name} is named: pass --model, or set {model_of}")
    return replace(options, name=name)


def _is_ready(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the environment names a model of the service and how to reach it."""
    keys, model_of, url_of = _ENVIRONMENT[name]
    return bool(environ.get(model_of) and any(environ.get(variable) for variable in (*keys, url_of)))


def connect(options: ProviderOptions) -> Provider:
    """The provider that the options and the environment name; nothing is sent yet."""
    asked_for = options.name or options.model
    options = configured(options)
    match options.name:
        case "openai":
            from dovetail.agent.providers.openai import OpenAIProvider

            return OpenAIProvider(options)
        case "anthropic":
            from dovetail.agent.providers.anthropic import AnthropicProvider

            return AnthropicProvider(options)
        case "gemini":
            from dovetail.agent.providers.gemini import GeminiProvider

            return GeminiProvider(options)
        case "local":
            from dovetail.agent.providers.local import local_provider

            return local_provider(options)
        case _:
            from dovetail.agent.providers.local import speaker_provider

            if not asked_for:
                sys.stderr.write(_NOTICE)
                sys.stderr.flush()
            return speaker_provider(options)
