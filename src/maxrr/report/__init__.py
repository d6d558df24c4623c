"""Figures and self-contained HTML, one look for all."""

import typing

from maxrr import lazily

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

if typing.TYPE_CHECKING:
    from maxrr.report.audit import audit_page
    from maxrr.report.demo import demo_page
    from maxrr.report.figures import draw
    from maxrr.report.page import is_report
    from maxrr.report.reproduction import cell_text, reproduction_page
    from maxrr.report.story import RequestStory, Story, kinds_of
else:  # numbers and receipts in words need no figures
    __getattr__ = lazily.names_from(__name__, {
        "audit": ("audit_page",),
        "demo": ("demo_page",),
        "figures": ("draw",),
        "page": ("is_report",),
        "reproduction": ("cell_text", "reproduction_page"),
        "story": ("RequestStory", "Story", "kinds_of"),
    })  # fmt: skip
