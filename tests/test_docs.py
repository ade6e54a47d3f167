"""Every block of the README and the docs is executed; `pytest tests/test_docs.py --update-examples` writes the outputs.

python   runs, and what it prints stands in its `#>` lines
json     loads as a format, and serializes back to the same JSON
console  each `$ dovetail ...` runs, and what it prints stands below it
ebnf     parses
sh       commands for the reader's own shell; the CI script runs the ones of the README
text     drawings and messages, nothing to run
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner
from pytest_examples import CodeExample, EvalExample, find_examples

import dovetail as dt
from dovetail.cli import main
from dovetail.grammar import ebnf

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
KINDS = {"python", "json", "console", "ebnf", "sh", "text", "yaml"}
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


class Block(NamedTuple):
    page: Path
    kind: str
    body: str

    def __str__(self) -> str:
        line = self.page.read_text().split(self.body)[0].count("\n") + 1
        return f"{self.page.relative_to(ROOT)}:{line}"


BLOCKS = [Block(page, *found.groups()) for page in PAGES for found in FENCE.finditer(page.read_text())]


def blocks(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {} == {str(block): block.kind for block in BLOCKS if block.kind not in KINDS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}")
    assert [] == broken


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


SAVED = re.compile(r"^Save this as `([\w.]+)`.*\n(?:.*\n)*?```\w+\n((?:.*\n)*?)```$", re.MULTILINE)


def folder_of(page: Path, empty: Path) -> Path:
    """Where the reader of a page is: in the sources, or in a tutorial, where there is only what it says to save."""
    if page.parent.name != "tutorials":
        return ROOT
    for name, content in SAVED.findall(page.read_text()):
        (empty / name).write_text(content)
    return empty


@pytest.mark.parametrize("example", list(find_examples(*map(str, PAGES))), ids=str)
def test_a_program_prints_what_its_page_says(
    example: CodeExample, eval_example: EvalExample, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder_of(example.path, tmp_path))
    eval_example.set_config(line_length=120)
    if eval_example.update_examples:
        eval_example.run_print_update(example)
    else:
        eval_example.run_print_check(example)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_a_format_loads_and_serializes_back(block: Block) -> None:
    written = json.loads(block.body)
    loaded = dt.load_format(written)
    assert loaded == dt.load_format(loaded.model_dump_json())


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_the_scripts_of_a_workflow_are_scripts(block: Block) -> None:
    scripts = list(scripts_of(yaml.safe_load(block.body)))
    assert scripts
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def scripts_of(job: Any) -> Iterator[str]:
    """The lines of shell in the description of a job, as hosts of CI have them."""
    for value in job.values() if isinstance(job, dict) else job:
        if isinstance(value, dict):
            yield from scripts_of(value)
    for key in ("run", "before_script", "script"):
        if isinstance(job, dict) and key in job:
            yield job[key] if isinstance(job[key], str) else "\n".join(job[key])


@pytest.mark.parametrize("block", blocks("ebnf"), ids=str)
def test_a_grammar_parses(block: Block) -> None:
    assert ebnf.parse(block.body)


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_a_command_prints_what_its_page_says(
    block: Block, eval_example: EvalExample, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder_of(block.page, tmp_path))
    monkeypatch.setenv("DOVETAIL_HOME", str(tmp_path / ".dovetail"))
    printed = "".join(f"{line}\n{run(line)}" for line in block.body.splitlines() if line.startswith("$ "))
    if eval_example.update_examples:
        block.page.write_text(block.page.read_text().replace(block.body, printed))
    else:
        assert block.body == printed


LAWS = dict(re.findall(r"^(\d)\. \*\*(.+?)\.\*\*", (ROOT / "docs/design.md").read_text(), re.MULTILINE))
LAW = re.compile(r"\b[Ll]aws? (\d)(?: \(([^)]+)\))?")


def test_laws_have_one_number_and_name_everywhere() -> None:
    files = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    said = {found for file in files if file != Path(__file__) for found in LAW.findall(file.read_text())}
    assert set() == {(number, name) for number, name in said if name not in ("", LAWS[number].lower())}
    tested = {number for file in (ROOT / "tests").rglob("*.py") for number, _ in LAW.findall(file.read_text())}
    assert set(LAWS) == tested


PUBLIC = set(re.findall(r"^\| (`dovetail[^|]*) \|", (ROOT / "docs/design.md").read_text(), re.MULTILINE))


def test_pages_send_nobody_into_private_modules() -> None:
    public = {name for cell in PUBLIC for name in re.findall(r"`([\w.]+)`", cell)}
    programs = [*blocks("python"), *(Block(p, "python", p.read_text()) for p in (ROOT / "examples").glob("*.py"))]
    used: set[tuple[str, str]] = set()
    for block in programs:
        if "internals" not in block.page.parts:
            used |= set(re.findall(r"^ *(?:from|import) (dovetail[\w.]*)(?: import (\w+)$)?", block.body, re.MULTILINE))
    assert set() == {module for module, name in used if not public & {module, f"{module}.{name}"}}


MADE = re.compile(r"^::: (dovetail[\w.]*)$", re.MULTILINE)


def test_the_reference_has_every_public_name_and_every_public_module() -> None:
    made = {name for page in (ROOT / "docs/reference").glob("*.md") for name in MADE.findall(page.read_text())}
    # The two that are modules have pages of their own.
    assert set() == {f"dovetail.{name}" for name in dt.__all__} - made - {"dovetail.dialects", "dovetail.formats"}
    public = {name for cell in PUBLIC for name in re.findall(r"`([\w.]+)`", cell)}
    private = {name for name in made if not any(name == module or name.startswith(f"{module}.") for module in public)}
    assert set() == private
    assert set() == {module for module in public if not any(f"{name}.".startswith(f"{module}.") for name in made)}


def first_sentence(file: Path) -> str:
    """What a file says it is, in its first line."""
    text = file.read_text()
    if file.suffix == ".py":
        told = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    else:
        lines = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
        told = " ".join(line.removeprefix("//").strip() for line in lines)
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(told.split()).replace("|", "\\|"))[0]


def file_map() -> str:
    """The page that lists every file of the core and the package."""
    page = "# Every file\n\nMade from the first lines of the files by `pytest tests/test_docs.py --update-examples`.\n"
    files = [*(ROOT / "core").rglob("*.cpp"), *(ROOT / "core").rglob("*.h"), *(ROOT / "src/dovetail").rglob("*.py")]
    files = [file for file in files if file.read_text()]
    for folder, inside in itertools.groupby(
        sorted(files, key=lambda file: (file.parent, file.name)), lambda f: f.parent
    ):
        page += f"\n## {folder.relative_to(ROOT)}\n\n| file | what it is |\n|---|---|\n"
        page += "".join(f"| `{file.name}` | {first_sentence(file)} |\n" for file in inside)
    return page


def test_every_file_is_on_the_map(eval_example: EvalExample) -> None:
    """To renew the page, run this with --update-examples."""
    page = ROOT / "docs/internals/files.md"
    if eval_example.update_examples:
        page.write_text(file_map())
    assert file_map() == page.read_text()
    silent = [line for line in page.read_text().splitlines() if line.endswith("|  |")]
    assert [] == silent


NAMED = re.compile(r"`([\w./]+\.(?:py|h|cpp|html|jinja))`")


@pytest.mark.parametrize("page", sorted((ROOT / "docs/internals").glob("*.md")), ids=lambda page: page.stem)
def test_internals_name_files_that_there_are(page: Path) -> None:
    here = [str(file) for top in ("benchmarks", "core", "src", "tests") for file in (ROOT / top).rglob("*.*")]
    missing = [
        name
        for name in NAMED.findall(page.read_text())
        if name != "completions.py" and not any(file.endswith("/" + name.removeprefix("../")) for file in here)
    ]
    assert [] == missing


def run(line: str) -> str:
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "dovetail"
    return CliRunner().invoke(main, arguments, prog_name="dovetail", terminal_width=80).output
