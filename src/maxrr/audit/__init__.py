"""Attacks that try to tell whether forgotten records were members, and how sure they are."""

from maxrr.audit.auditing import audit
from maxrr.audit.findings import Finding
from maxrr.audit.planning import AuditPlan, plan_audit
from maxrr.audit.results import AuditReport

__all__ = ["AuditPlan", "AuditReport", "Finding", "audit", "plan_audit"]
