"""Attacks that try to tell whether forgotten records were members, and how sure they are."""

from maxrr.audit.auditing import audit, check_options
from maxrr.audit.evidence import ATTACKS
from maxrr.audit.findings import Finding
from maxrr.audit.planning import AuditPlan, plan_audit
from maxrr.audit.pools import ShadowPool
from maxrr.audit.results import AuditReport
from maxrr.audit.statements import audit_statement
from maxrr.audit.threshold import Platt
from maxrr.audit.work import AuditWork, work_of_audit

__all__ = [
    "ATTACKS",
    "AuditPlan",
    "AuditReport",
    "AuditWork",
    "Finding",
    "Platt",
    "ShadowPool",
    "audit",
    "audit_statement",
    "check_options",
    "plan_audit",
    "work_of_audit",
]
