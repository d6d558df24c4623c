"""Attacks that try to tell whether forgotten records were members, and how sure they are."""

from maxrr.audit.auditing import audit, check_options
from maxrr.audit.findings import Finding
from maxrr.audit.planning import AuditPlan, AuditWork, plan_audit, work_of_audit
from maxrr.audit.results import AuditReport, audit_statement
from maxrr.audit.scores import ATTACKS
from maxrr.audit.shadows import ShadowPool

__all__ = [
    "ATTACKS",
    "AuditPlan",
    "AuditReport",
    "AuditWork",
    "Finding",
    "ShadowPool",
    "audit",
    "audit_statement",
    "check_options",
    "plan_audit",
    "work_of_audit",
]
