"""Draw what the analysis of a chat template finds, as `dovetail inspect --html` does.

python docs/img/draw_analysis.py        writes docs/img/analysis.html
"""

from __future__ import annotations

from pathlib import Path

from drawing import write

from dovetail.cli.inspect_page import page
from dovetail.templates.analysis import analyze_template
from dovetail.templates.sources import find_template

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def draw() -> dict[str, str]:
    """The page, by the name of its file."""
    source = find_template((EXAMPLES / "chat_template.jinja").read_text())
    return {"analysis.html": page(source, analyze_template(source.text, source.bos_token, source.eos_token))}


if __name__ == "__main__":
    write(draw())
