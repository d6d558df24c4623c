"""Figures and self-contained HTML, one look for all."""

from maxrr.report.audit import audit_page
from maxrr.report.demo import demo_page
from maxrr.report.figures import draw
from maxrr.report.page import is_report
from maxrr.report.reproduction import cell_text, reproduction_page
from maxrr.report.story import RequestStory, Story, kinds_of

__all__ = [
    "RequestStory",
    "Story",
    "audit_page",
    "cell_text",
    "demo_page",
    "draw",
    "is_report",
    "kinds_of",
    "reproduction_page",
]
