"""Self-contained HTML pages, one look for all."""

import typing

from maxrr import lazily

__all__ = [
    "OtherVersion",
    "RequestStory",
    "Story",
    "audit_page",
    "demo_page",
    "dossier_in",
    "dossier_page",
    "is_report",
    "kinds_of",
    "require_same_page",
]

if typing.TYPE_CHECKING:
    from maxrr.report.audit import audit_page
    from maxrr.report.demo import RequestStory, Story, demo_page, kinds_of
    from maxrr.report.dossier import OtherVersion, dossier_in, dossier_page, require_same_page
    from maxrr.report.page import is_report
else:  # numbers and receipts in words need no figures
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "audit": ("audit_page",),
        "demo": ("RequestStory", "Story", "demo_page", "kinds_of"),
        "dossier": ("OtherVersion", "dossier_in", "dossier_page", "require_same_page"),
        "page": ("is_report",),
    })  # fmt: skip
