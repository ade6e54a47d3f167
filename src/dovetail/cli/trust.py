"""`dovetail trust`: let the settings of a project do more than restrict."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--remove", is_flag=True, help="Take the trust back.")
def trust(folder: Path, remove: bool) -> None:
    """Trust the settings of the project in FOLDER, by default this one.

    The file .dovetail/settings.json of a project can always restrict what a run may do. Only in a folder that you trust
    can it also give: start hooks and tool servers, allow calls, name the model and its address. What it would give is
    listed; look at it first, and again after the project has changed.
    """
    from dovetail.agent.settings import load_settings, set_trust

    set_trust(folder, False)
    given = load_settings(folder).unused
    place = folder.resolve()
    if remove:
        click.echo(f"{place} is not trusted.")
        return
    set_trust(folder, True)
    click.echo(f"{place} is trusted. Its settings give: {', '.join(given) or 'nothing yet'}.")
