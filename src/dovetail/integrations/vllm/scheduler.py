"""The scheduler class that turns the masks on: vLLM's own scheduler, whose grammars Dovetail makes."""

from __future__ import annotations

from typing import Any

from dovetail.errors import DovetailError

KNOWN = "0.32"
_NAME = "dovetail.integrations.vllm.Scheduler"

# What the masks rely on, by module: attributes of classes and names of arguments.
_MANAGER = ("backend", "grammar_init", "vllm_config")
_BACKEND = {"allocate_token_bitmask", "compile_grammar", "destroy"}
_GRAMMAR = {"accept_tokens", "fill_bitmask", "is_terminated", "reset", "rollback", "validate_tokens"}


class EngineError(DovetailError):
    """The engine has changed an interface that Dovetail stands on."""


class Scheduler:
    """Makes the scheduler that vLLM would make, after it has given vLLM the backend that makes masks.

    vLLM makes a backend of its own only where there is none yet. Nothing of the scheduler is changed.
    """

    def __new__(cls, vllm_config: Any, kv_cache_config: Any, structured_output_manager: Any, **kwargs: Any) -> Any:
        """vLLM's own scheduler for this configuration."""
        require(structured_output_manager)
        from vllm.v1.core.sched.async_scheduler import AsyncScheduler
        from vllm.v1.core.sched.scheduler import Scheduler as PlainScheduler

        from dovetail.integrations.vllm.backend import DovetailBackend

        manager = structured_output_manager
        if not vllm_config.model_config.skip_tokenizer_init:
            size = vllm_config.model_config.get_vocab_size()
            manager.backend = DovetailBackend(vllm_config, manager.tokenizer, size)
        made: Any = AsyncScheduler if vllm_config.scheduler_config.async_scheduling else PlainScheduler
        return made(vllm_config, kv_cache_config, manager, **kwargs)


def is_chosen(vllm_config: Any) -> bool:
    """Whether a server was started with the masks of Dovetail."""
    return vllm_config.scheduler_config.scheduler_cls in (_NAME, Scheduler)


def require(manager: Any) -> None:
    """Make sure that vLLM is as we know it; the error says what has changed, before a request finds out."""
    from vllm.v1.structured_output import backend_types

    problems = [f"its StructuredOutputManager has no `{name}`" for name in _MANAGER if not hasattr(manager, name)]
    for name, known in (("StructuredOutputBackend", _BACKEND), ("StructuredOutputGrammar", _GRAMMAR)):
        wanted: frozenset[str] = getattr(getattr(backend_types, name, None), "__abstractmethods__", frozenset())
        if wanted != known:
            problems.append(f"its {name} has {sorted(wanted ^ known)} more or less")
    if problems:
        raise EngineError(unknown("; ".join(problems)))


def unknown(problem: str) -> str:
    """What is said of a vLLM that is not as we know it."""
    from vllm.version import __version__

    return (
        f"the masks of Dovetail know vLLM {KNOWN}, and this is {__version__}: {problem}\n"
        f"  fix  install a Dovetail that knows it, or start vLLM without --scheduler-cls {_NAME}"
    )
