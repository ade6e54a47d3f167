"""The command `dovetail`: one module per verb."""

from __future__ import annotations

import signal
import sys

if sys.argv[1:2] == ["run"] and hasattr(signal, "pthread_sigmask"):
    # A run tells one result, also of a signal that comes while the rest is being loaded: it waits for the run.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))

import importlib
from typing import Any

import click

from dovetail import __version__
from dovetail.errors import DovetailError

# Each verb is imported only when it is used, so that `dovetail --help` stays fast whatever a verb needs.
_VERBS = {
    "bench": "Print how fast Dovetail is, side by side with its peers.",
    "check": "Prove that chat templates and their dialects agree.",
    "chat": "Talk with a local model.",
    "completion": "Print what makes a shell complete verbs and options.",
    "demo": "Show the whole idea in a minute.",
    "doctor": "Show what is installed, and what is missing for what.",
    "grammar": "Translate a format or grammar, or try a text on it.",
    "inspect": "Show how a chat template makes its model talk.",
    "parse": "Read what a model said: reasoning, content, tool calls.",
    "run": "Let a model work in a directory until its answer fits a schema.",
    "serve": "Serve a local model to clients of OpenAI and Anthropic.",
    "trust": "Let the settings of a project do more than restrict.",
}


class _Failure(click.ClickException):
    """One of our own errors, told as it tells itself."""

    def __init__(self, error: DovetailError) -> None:
        super().__init__(str(error))
        self._name = type(error).__name__

    def show(self, file: Any = None) -> None:
        click.echo(f"{self._name}: {self.message}", file=file, err=file is None)


class _Verbs(click.Group):
    """A group that knows its verbs by name and turns our errors into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(f"dovetail.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DovetailError as error:
            raise _Failure(error) from error
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(130)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """One description of how a language model talks: it constrains the output and reads it back."""
