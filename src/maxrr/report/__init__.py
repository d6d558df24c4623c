"""Figures and self-contained HTML, one look for all."""

import importlib
import typing

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
else:
    _HOMES = {
        "audit_page": "audit",
        "demo_page": "demo",
        "draw": "figures",
        "is_report": "page",
        "cell_text": "reproduction",
        "reproduction_page": "reproduction",
        "RequestStory": "story",
        "Story": "story",
        "kinds_of": "story",
    }

    def __getattr__(name):
        """Import a name when it is first asked for: numbers and receipts in words need no figures."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
