"""Hugging Face response templates: how a model's output becomes a message, and what it may be."""

from dovetail.response_templates.parser import Diagnostic, ResponseParser, Span
from dovetail.response_templates.reading import get_response_parser, parse_response
from dovetail.response_templates.template import Field, ResponseTemplate

__all__ = ["Diagnostic", "Field", "ResponseParser", "ResponseTemplate", "Span", "get_response_parser", "parse_response"]
