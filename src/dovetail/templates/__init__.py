"""Chat templates: rendering, differential analysis, and proofs that a dialect fits its template."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dovetail.templates.checks import Report
    from dovetail.typing import TemplateSource


def check(chat_template: TemplateSource, bos_token: str = "", eos_token: str = "") -> Report:
    """Analyze a chat template and prove, feature by feature, that what it writes is read back and may be written.

    Those are law 2 (conservation), law 3 (chunk invariance), law 7 (agreement) and law 8 (totality).

    The template is given as text, as the path of a file or folder, or as the tokenizer that holds it.
    """
    # Imported late, because jinja2 takes longer to import than everything else together.
    from dovetail.templates.checks import check_template
    from dovetail.templates.sources import find_template

    source = find_template(chat_template)
    return check_template(source.text, bos_token or source.bos_token, eos_token or source.eos_token)
