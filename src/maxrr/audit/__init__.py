"""Attacks that try to tell whether forgotten records were members, and how sure they are."""

from maxrr.audit.auditing import audit
from maxrr.audit.findings import AuditReport, Finding
from maxrr.audit.foreign import audit_predictions

__all__ = ["AuditReport", "Finding", "audit", "audit_predictions"]
