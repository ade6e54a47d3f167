"""`dovetail completion`: the script by which a shell completes verbs, options and their choices."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete the verbs and options of this command.

    zsh looks in ~/.zfunc once its ~/.zshrc says so: fpath+=~/.zfunc; autoload -U compinit; compinit

    \b
    Examples
      dovetail completion bash > ~/.local/share/bash-completion/completions/dovetail
      dovetail completion zsh > ~/.zfunc/_dovetail
      dovetail completion fish > ~/.config/fish/completions/dovetail.fish
    """
    made = get_completion_class(shell)
    assert made
    click.echo(made(ctx.find_root().command, {}, "dovetail", "_DOVETAIL_COMPLETE").source())
