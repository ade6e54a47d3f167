"""The environment that programs started by a run get: everything but the keys of model providers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

# Keys that providers and their SDKs read, by the endings that they share and by name.
_KEY = re.compile(r"(?:^|_)(?:API_?KEYS?|API_?TOKEN|AUTH_TOKEN|ADMIN_KEY|WEBHOOK_SECRET)$", re.IGNORECASE)
_NAMED = frozenset(
    "HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACE_TOKEN AZURE_OPENAI_AD_TOKEN AWS_BEARER_TOKEN_BEDROCK".split()
)
# A value that is shorter than this is no key, but a word that other variables may hold too.
_SHORTEST_KEY = 8


def without_keys(environ: Mapping[str, str] | None = None, keep: Collection[str] = ()) -> dict[str, str]:
    """The variables that hold no key of a provider, under whatever name; those in `keep` stay."""
    environ = os.environ if environ is None else environ
    keys = {name for name in environ if name not in keep and (_KEY.search(name) or name in _NAMED)}
    values = {environ[name] for name in keys if len(environ[name]) >= _SHORTEST_KEY}
    return {
        name: value for name, value in environ.items() if name in keep or (name not in keys and value not in values)
    }
