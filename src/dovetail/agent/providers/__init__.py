"""Models behind their interfaces.

ProviderOptions --connect--> Provider --stream(Request)--> deltas

catalog.py     what is known about models: context windows, longest replies, prices
fallback.py    a second model for when the first one fails
retrying.py    attempts one after the other, with pauses between them
chat.py        a run's turns as chat messages
strict.py      which schemas a service can enforce by itself
openai.py anthropic.py gemini.py    the services, through their own clients
local.py       models in this process, held to the tools by a grammar; the embedded speaker among them
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from dovetail.agent.protocols import Provider
from dovetail.agent.types import ProviderError, ProviderOptions

__all__ = ["NAMES", "NoModelError", "configured", "connect"]

NAMES = ("openai", "anthropic", "gemini", "local", "speaker")

# What the environment calls the keys, the model and the address of each service.
_ENVIRONMENT = {
    "openai": (("OPENAI_API_KEY",), "OPENAI_MODEL", "OPENAI_BASE_URL"),
    "anthropic": (("ANTHROPIC_API_KEY",), "ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL"),
    "gemini": (("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GEMINI_MODEL", "GOOGLE_GEMINI_BASE_URL"),
}

# How OpenAI calls its models. Other names may be those of mistyped directories.
_OF_OPENAI = re.compile(r"(gpt|chatgpt|codex|computer-use|ft:|o[0-9])", re.IGNORECASE)


class NoModelError(ProviderError):
    """Nothing says which model answers."""

    def __init__(self) -> None:
        super().__init__(
            "no model is named\n"
            "  fix  name one in one of these ways:\n"
            "         --model NAME, with ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY in the environment\n"
            "         --base-url URL --model NAME, for a server that speaks the protocol of OpenAI\n"
            "         --model FILE.gguf or DIRECTORY, for a local model; --model smollm2 for a small one\n"
            "         DOVETAIL_MODEL, or a key and OPENAI_MODEL, ANTHROPIC_MODEL or GEMINI_MODEL, in the environment\n"
            "         model.name in ~/.dovetail/settings.json\n"
            "         --model speaker, for answers at random that fit the schema, to try things out"
        )


def configured(options: ProviderOptions, environ: Mapping[str, str] = os.environ) -> ProviderOptions:
    """The options with their provider: the one asked for, or what model and environment tell.

    The speaker, whose answers are random, is the provider only of those who name it.
    """
    name, model = options.name, options.model
    if not name:
        name = _provider_of(model, options.base_url, environ)
    if name not in NAMES:
        raise ProviderError(f"there is no provider {name!r}: use one of {', '.join(NAMES)}")
    if name in _ENVIRONMENT:
        _check_name(name, options, environ)
        keys, model_of, url_of = _ENVIRONMENT[name]
        options = replace(
            options,
            api_key=options.api_key or next((environ[key] for key in keys if environ.get(key)), ""),
            model=model or environ.get(model_of, ""),
            base_url=options.base_url or environ.get(url_of, ""),
        )
        if not options.model:
            raise ProviderError(f"no model of {name} is named: pass --model, or set {model_of}")
        if options.base_url and not _is_address(options.base_url):
            raise ProviderError(
                f"{options.base_url!r} is no address of a server (--base-url, {url_of})\n"
                "  fix  write it with http:// or https://, such as http://localhost:8000/v1"
            )
    return replace(options, name=name)


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _check_name(name: str, options: ProviderOptions, environ: Mapping[str, str]) -> None:
    """Refuse to send the name of a file to a service, unless it is a server of one's own, which may call models so."""
    from dovetail.models.locate import is_file_name

    own = options.base_url or environ.get(_ENVIRONMENT[name][2], "")
    if options.model and not own and is_file_name(options.model):
        raise ProviderError(
            f"{options.model!r} is the name of a file or directory, and is not sent to {name}\n"
            "  fix  leave --provider out, or pass --base-url for a server that calls its model so"
        )


def _provider_of(model: str, base_url: str, environ: Mapping[str, str]) -> str:
    if base_url and not model:
        return "openai"
    if not model:
        return _ready(environ)
    from dovetail.models.locate import SPEAKER, looks_local  # which loads what most runs do not need

    if not base_url and looks_local(model):
        return "speaker" if model == SPEAKER else "local"
    services = {"claude": "anthropic", "gemini": "gemini"}
    provider = next((known for start, known in services.items() if model.startswith(start)), "openai")
    own = base_url or environ.get(_ENVIRONMENT["openai"][2], "")
    if provider == "openai" and not own and not _OF_OPENAI.match(model):
        raise ProviderError(
            f"{model!r} is no file or directory here, and no known service has models that are called so\n"
            "  fix  give the path of a GGUF file or of a model directory, or say who has it: --provider, or --base-url"
        )
    return provider


def _ready(environ: Mapping[str, str]) -> str:
    """The first provider that the environment makes ready."""
    ready = next((known for known in _ENVIRONMENT if _is_ready(known, environ)), None)
    if ready is None:
        raise NoModelError
    return ready


def _is_ready(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the environment names a model of the service and how to reach it."""
    keys, model_of, url_of = _ENVIRONMENT[name]
    return bool(environ.get(model_of) and any(environ.get(variable) for variable in (*keys, url_of)))


def connect(options: ProviderOptions) -> Provider:
    """The provider that the options and the environment name; nothing is sent yet."""
    first = _connected(configured(options))
    if not options.fallback_model:
        return first
    from dovetail.agent.providers.fallback import Fallback

    return Fallback(first, _connected(configured(replace(options, model=options.fallback_model))))


def _connected(options: ProviderOptions) -> Provider:
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

            return speaker_provider(options)
