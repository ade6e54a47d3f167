"""`dovetail doctor`: what is installed, and what is missing for what."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

import click

import dovetail
from dovetail.extras import DISTRIBUTION, EXTRAS, install

# A requirement as the metadata of a wheel write it: name, the least version, and the extra that it belongs to.
_REQUIREMENT = re.compile(
    r"""^([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=|==)?\s*([\w.+]*)[^;]*(?:;.*extra == ['"]([\w-]+)['"])?"""
)
_PROGRAMS = {
    "bwrap": "the sandbox of shell commands (Debian: apt install bubblewrap); else Landlock, where the kernel has it",
    "git": "runs know the branch and the changes of the project",
    "rg": "grep_search is faster (Debian: apt install ripgrep)",
}
_KEYS = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY")


@dataclass(frozen=True)
class Package:
    """A requirement and what is installed of it: `state` is "ok", "missing" or "old"."""

    name: str
    least: str
    installed: str
    state: Literal["ok", "missing", "old"]


@dataclass(frozen=True)
class Part:
    """Something that a user can do, with the packages that it needs and the command that installs them."""

    name: str
    purpose: str
    packages: tuple[Package, ...]
    fix: str

    @property
    def lacking(self) -> tuple[Package, ...]:
        """The packages that are missing or too old."""
        return tuple(package for package in self.packages if package.state != "ok")


@click.command()
@click.argument("wanted", metavar="[EXTRA]...", nargs=-1, type=click.Choice(list(EXTRAS)))
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def doctor(wanted: tuple[str, ...], as_json: bool) -> None:
    """Show what is installed, and what is missing for what.

    Without EXTRA nothing that is missing is an error: an extra is for those who want it. Name the ones that you need,
    and the exit code says whether they are complete. Of keys in the environment only their names are shown.

    \b
    Examples
      dovetail doctor
      dovetail doctor agent serve
      dovetail doctor --json

    \b
    Exit codes
      0  what every use needs is there, and what each named EXTRA needs
      1  the package is not installed, only on the path: nothing tells what it needs
      2  the command line is wrong
      3  a package is missing or too old
    """
    parts = list(_parts())
    shown = [part for part in parts if not wanted or part.name in ("", *wanted)]
    if as_json:
        click.echo(json.dumps(_everything(shown), indent=2))
    else:
        _print(shown)
    if any(part.lacking for part in parts if part.name in ("", *wanted)):
        raise click.exceptions.Exit(3)


def _parts() -> Iterable[Part]:
    """The package itself, named "", and each extra."""
    needed = _requirements()
    yield Part("", "what every use needs", _packages(needed.get("", {})), install())
    for name, purpose in EXTRAS.items():
        yield Part(name, purpose, _packages(needed.get(name, {})), install(name))


def _requirements() -> dict[str, dict[str, str]]:
    """The least version of each requirement by extra; "" holds what is always required."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        raise click.ClickException(f"{DISTRIBUTION} is not installed, only on the path\n  fix  {install()}") from None
    by_extra: dict[str, dict[str, str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        assert match, f"the metadata hold a requirement of another form: {line}"
        name, least, extra = match.groups()
        by_extra.setdefault(extra or "", {})[name] = least
    return by_extra


def _packages(least: Mapping[str, str]) -> tuple[Package, ...]:
    return tuple(_package(name, wanted) for name, wanted in least.items())


def _package(name: str, least: str) -> Package:
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Package(name, least, "", "missing")
    return Package(name, least, installed, "old" if _numbers(installed) < _numbers(least) else "ok")


def _numbers(written: str) -> tuple[int, ...]:
    """The release of a version as numbers, without what a pre-release or a local build adds."""
    match = re.match(r"\d+(?:\.\d+)*", written)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _landlock() -> str:
    """Why the kernel gives no Landlock, or nothing where it does."""
    if sys.platform != "linux":
        return "this is not Linux"
    from dovetail.agent.sandbox.landlock import landlock_problem

    return landlock_problem()


def _machine() -> dict[str, str]:
    return {
        "dovetail": dovetail.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _everything(parts: list[Part]) -> dict[str, object]:
    return {
        **_machine(),
        "parts": [asdict(part) | {"complete": not part.lacking} for part in parts],
        "programs": {name: shutil.which(name) for name in _PROGRAMS},
        "landlock": _landlock() or True,
        "keys": [name for name in _KEYS if os.environ.get(name)],
    }


def _print(parts: list[Part]) -> None:
    for name, value in _machine().items():
        click.echo(f"{name:<14}{value}")
    for part in parts:
        click.echo()
        _print_part(part)
    click.echo("\nprograms")
    for name, purpose in _PROGRAMS.items():
        place = shutil.which(name)
        click.echo(f"  {name:<12}{place or f'not found, optional: {purpose}'}")
    click.echo(f"  {'Landlock':<12}{_landlock() or 'in this kernel'}")
    click.echo("\nkeys in the environment")
    click.echo("  " + (", ".join(name for name in _KEYS if os.environ.get(name)) or f"none of {', '.join(_KEYS)}"))


def _print_part(part: Part) -> None:
    state = click.style("incomplete", "yellow") if part.lacking else click.style("complete", "green")
    click.echo(f"{part.name or DISTRIBUTION}: {state}; {part.purpose}")
    for package in part.packages:
        least = f", at least {package.least} is needed" if package.state == "old" else ""
        click.echo(f"  {package.name:<40}{package.installed or 'missing'}{least}")
    if part.lacking:
        click.echo(f"  fix  {part.fix}")
