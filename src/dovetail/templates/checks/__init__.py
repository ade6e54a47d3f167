"""Proofs that a dialect fits its chat template.

probe messages --template--> turns --dialect--> read back, accepted, streamed; and a random speaker --> read
"""

from dovetail.templates.checks.checking import check_template
from dovetail.templates.checks.report import FEATURES, Check, Report, markdown

__all__ = ["FEATURES", "Check", "Report", "check_template", "markdown"]
