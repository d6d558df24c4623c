"""An audit as a statement about a receipt, which can be signed."""

from maxrr.audit.results import AuditReport
from maxrr.evidence import Statement
from maxrr.unlearning.statements import AUDIT_TYPE, HandedReceipt, about_receipt


def audit_statement(report: AuditReport, handed: HandedReceipt) -> Statement:
    """What an audit found, as a statement about the receipt.

    Parameters
    ----------
    report : AuditReport
        What was found.
    handed : HandedReceipt
        The receipt that was audited.

    Returns
    -------
    Statement
        What can be signed, by the operator or by whoever audited the model: the report as its JSON has it.
    """
    return about_receipt(handed, AUDIT_TYPE, report.to_json())
