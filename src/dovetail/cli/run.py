"""`dovetail run`: a model works through tools and ends with an answer that fits a schema."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from typing import Any

import click

from dovetail.agent.flags import ConflictError, Flags, check_conflicts, split_names

_TOOLS: Any = {"multiple": True, "metavar": "NAMES"}


class _WrongUsage(click.UsageError):
    exit_code = 1


class _Command(click.Command):
    """A wrong command line ends with 1 here, as scripts that drive headless agents expect."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _WrongUsage(error.message, error.ctx) from error


def _interrupted(*_: Any) -> None:
    """What the first signal does until the run itself listens; later ones do not spoil the end that it leads to."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)  # not SIG_IGN: Python complains about a signal that is on its way already
    raise KeyboardInterrupt


def _take_closed_streams() -> None:
    """Keep files from getting the numbers of closed standard streams, into which programs would then write."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stderr is None:  # print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


@click.command(cls=_Command)
@click.argument("query", nargs=-1)
@click.option("-p", "--prompt", metavar="TEXT", help="What to do; the same as the words of QUERY.")
@click.option("-i", "--prompt-interactive", metavar="TEXT", hidden=True)
@click.option("--json-schema", metavar="JSON|@FILE", help="The schema that the answer has to fit.")
@click.option("--wrap-root", is_flag=True, help="Take a schema of an array, a string, a number: any JSON value.")
@click.option("--allow-unknown-keywords", is_flag=True, help="Warn about unknown keywords instead of refusing them.")
@click.option("-o", "--output-format", type=click.Choice(["text", "json", "stream-json"]), help="How to answer: below.")
@click.option("--input-format", type=click.Choice(["text", "stream-json"]), default="text", hidden=True)
@click.option("--include-partial-messages", is_flag=True, help="Show replies while they come (stream-json only).")
@click.option("-C", "--workspace", metavar="DIR", default=".", help="The directory to work in; this one by default.")
@click.option("--provider", metavar="NAME", help="openai, anthropic, gemini, local or speaker.")
@click.option("-m", "--model", metavar="NAME", help="The model's name, or its file or directory.")
@click.option("--base-url", metavar="URL", help="Where the provider's interface is, such as a server of your own.")
@click.option("--seed", type=int, metavar="N", help="The same seed makes the speaker say the same.")
@click.option("--max-session-turns", metavar="N", help="How often the model may be called.")
@click.option("--max-wall-time", metavar="TIME", help="How long the run may take: 90, 30s, 10m, 1.5h.")
@click.option("--max-tool-calls", metavar="N", help="How many tools may be called.")
@click.option("--max-structured-retries", metavar="N", help="How many answers may fail to fit; 10 by default.")
@click.option("--max-subagent-depth", type=click.IntRange(1, 100), default=5, metavar="N", help="How deep agents nest.")
@click.option("--max-tokens-total", metavar="N", help="How many tokens the run may take, with its subagents.")
@click.option("--max-cost", metavar="USD", help="How many dollars the run may cost, with its subagents.")
@click.option("--prices", metavar="JSON|FILE", help="Prices of models: dollars for a million tokens.")
@click.option("--max-tokens", metavar="N", help="How many tokens one reply may have.")
@click.option("--temperature", metavar="X", help="How freely the model draws its words: 0 to 2.")
@click.option("--effort", type=click.Choice(["low", "medium", "high"]), help="How much the model thinks.")
@click.option("--timeout", metavar="TIME", help="How long one reply may take; 10m by default.")
@click.option("--max-retries", metavar="N", help="How often a reply that failed is asked for again; 5 by default.")
@click.option("--fallback-model", metavar="NAME", help="The model to ask when the first one fails.")
@click.option("-y", "--yolo", is_flag=True, help="Allow every tool call.")
@click.option("--approval-mode", type=click.Choice(["plan", "default", "auto-edit", "auto", "yolo"]), help="See below.")
@click.option("--core-tools", **_TOOLS, help="Of the built-in tools, offer only these.")
@click.option("--allowed-tools", **_TOOLS, help="Allow these, such as edit or 'Bash(git *)'.")
@click.option("--exclude-tools", **_TOOLS, help="Never offer these, or never allow such calls of them.")
@click.option("--sandbox", type=click.Choice(["auto", "required", "bubblewrap", "landlock", "off"]), help="See below.")
@click.option("--sandbox-network", is_flag=True, help="Let commands in the sandbox use the network.")
@click.option("--trust-project", is_flag=True, help="Use all settings of this project: hooks, servers, allow rules.")
@click.option("--bare", is_flag=True, help="No settings files, no hooks, and read_file, edit and the shell only.")
@click.option("--safe-mode", is_flag=True, help="No settings files and no hooks, but all tools.")
@click.option("--mcp-config", metavar="JSON|FILE", help="Tool servers to connect to.")
@click.option("--allowed-mcp-server-names", **_TOOLS, help="Of the configured servers, use only these.")
@click.option("-c", "--continue", "continue_", is_flag=True, help="Go on with the latest session of this directory.")
@click.option("-r", "--resume", metavar="ID", help="Go on with this session.")
@click.option("--session-id", metavar="UUID", help="The id of the new session.")
@click.option("--fork-session", is_flag=True, help="Go on in a copy, under a new id.")
@click.option("--chat-recording/--no-chat-recording", default=None, help="Keep a transcript, or none.")
@click.option("--system-prompt", metavar="TEXT", help="Instead of the built-in instructions.")
@click.option("--append-system-prompt", metavar="TEXT", default="", help="After the built-in instructions.")
@click.option("--add-dir", multiple=True, metavar="DIR", help="A folder beside the workspace to work in, too.")
@click.option("--context-files/--no-context-files", default=None, help="Read AGENTS.md and CLAUDE.md, or do not.")
@click.option("--keep-answer", is_flag=True, help="Keep the answer for --continue, in a file of its own.")
@click.option("--output-file", metavar="FILE", help="Write the answer to this file, too.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but why a run failed.")
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what the run is doing.")
@click.option("--acp", "--experimental-acp", "acp", is_flag=True, hidden=True)
@click.pass_context
def run(context: click.Context, /, **options: Any) -> None:
    """Let a model work in a directory until its answer fits a schema.

    The model reads, searches and, where you allow it, changes files and runs commands. With --json-schema it must end
    by delivering a value that fits; standard output then has that value and nothing else. A model has to be named, by
    flags, environment or settings; "--model speaker" is none: its values are random, but they always fit.

    \b
    Examples
      dovetail run "Which of these files handle errors?" --json-schema @answer.json
      dovetail run -p "List the Python files here" --json-schema '{"type": "object",
          "properties": {"files": {"type": "array", "items": {"type": "string"}}}, "required": ["files"]}'
      git diff | dovetail run -p "Review this" --provider anthropic -o json | jq '.[-1].structured_result'
      dovetail run -p "Fix the failing test" --approval-mode auto-edit --allowed-tools 'Bash(pytest *)'

    \b
    Output
      text         the value (without a schema: the last words of the model); on failure nothing
      json         one array of all messages; the last one is the result
      stream-json  the same messages, a line each, as they come
      A result has structured_result exactly when the answer fits, and termination_reason always.

    \b
    Approval
      plan, default, auto  reading only, and what --allowed-tools and settings allow
      auto-edit            also changes of files in the workspace
      yolo                 everything

    \b
    Sandbox of shell commands: they write only in the workspace, and have no network
      auto                  bubblewrap, else Landlock, else none and a warning
      required              bubblewrap or Landlock, or the run ends with 44
      bubblewrap, landlock  this one or none: the run ends with 44

    \b
    Exit codes
      0    the answer is on standard output
      1    prose instead of an answer, a loop, no valid key, or a wrong command line
      42   the prompt names a file that cannot be read
      44   there is no sandbox, and one is required     45  a hook did not let the run begin
      52   no model is named, or the schema or the configuration is wrong
      53   --max-session-turns    55  --max-wall-time or --max-tool-calls    56  --max-structured-retries
      57   --max-tokens-total     58  --max-cost
      61   the reply was cut off  62  the model refused                      63  it said nothing
      69   the model could not be asked    70  a mistake of ours    74  the answer could not be written
      130  SIGINT or SIGTERM
    """
    for name in ("core_tools", "allowed_tools", "exclude_tools", "allowed_mcp_server_names"):
        options[name] = split_names(options[name])
    context.exit(_run(context, Flags(**options)))


def _run(context: click.Context, flags: Flags) -> int:
    """Check, ask and run; the exit code."""
    began = time.monotonic()  # before what takes long to import: the wall time is that of the command
    _take_closed_streams()
    before = {number: signal.signal(number, _interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)
        check_conflicts(flags, stdin_is_terminal=sys.stdin is not None and sys.stdin.isatty())
        from dovetail.agent.command import execute

        # An event loop that is half made cannot be interrupted cleanly; `execute` lets the signals in.
        signal.pthread_sigmask(signal.SIG_BLOCK, before)
        return asyncio.run(execute(flags, began))
    except ConflictError as conflict:
        click.echo(str(conflict), err=True)
        click.echo(context.get_usage(), err=True)
        return 1
    except KeyboardInterrupt:
        from dovetail.agent.command import cancelled

        return cancelled(flags)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        # The interpreter would look for garbage in all that was imported once more before it ends, for 0.2 s. What
        # PyTorch brings along has to be collected, or Triton writes a page about leaks.
        if "torch" not in sys.modules:
            gc.freeze()
