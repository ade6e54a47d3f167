"""Dialects from chat templates: render variants of one conversation, compare, infer, verify.

template --probes--> renders --diff--> findings, each with its evidence --verify--> Analysis
"""

from dovetail.templates.analysis.analyzing import analyze_template
from dovetail.templates.analysis.evidence import Analysis, Capabilities, Evidence, Finding, Modes, Verification

__all__ = ["Analysis", "Capabilities", "Evidence", "Finding", "Modes", "Verification", "analyze_template"]
