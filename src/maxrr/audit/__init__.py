"""Attacks that try to tell whether forgotten records were members, and how sure they are."""

from maxrr.audit.auditing import audit
from maxrr.audit.findings import AuditReport, Finding
from maxrr.audit.planning import AuditPlan, plan_audit

__all__ = ["AuditPlan", "AuditReport", "Finding", "audit", "plan_audit"]
