"""Models that are loaded while a person watches."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dovetail.models import Model

_WIDTH = 24


def load_with_bar(name: str, dialect: str | None = None, *, quiet: bool = False) -> Model:
    """The model that a name means; on a terminal standard error shows how much of it is loaded."""
    from dovetail.models import load

    shown = sys.stderr.isatty() and not quiet
    started = time.monotonic()

    def progress(share: float) -> None:
        bar = "#" * round(share * _WIDTH)
        click.echo(f"\rloading {name} [{bar:<{_WIDTH}}] {share:4.0%}", nl=False, err=True)

    model = load(name, dialect=dialect, progress=progress if shown else None)
    if shown:
        click.echo(
            f"\r{model.name}, loaded in {time.monotonic() - started:.1f} s".ljust(_WIDTH + len(name) + 20), err=True
        )
    return model
