"""The public names are frozen: adding or removing one is a decision, made here and in the CHANGELOG."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from maxrr.errors import MaxRRError

PUBLIC = {
    "maxrr": {"LinearSVM", "MaxRR", "Workspace", "__version__"},
    "maxrr.audit": {
        "AuditReport",
        "Finding",
        "audit",
        "audit_predictions",
    },
    "maxrr.core": {
        "Core",
        "FrequencyCore",
        "Frozen",
        "FullCore",
        "HashCore",
        "MiddleCore",
        "Ranking",
        "rank",
    },
    "maxrr.data": {
        "Categories",
        "DataError",
        "Dataset",
        "Encoding",
        "Number",
        "available",
        "fetch",
        "from_frame",
        "load",
        "prepare",
        "train_and_test",
    },
    "maxrr.errors": {
        "DataError",
        "EngineError",
        "EvidenceError",
        "MaxRRError",
        "NotHere",
        "OlderCopy",
        "Refused",
        "RevocationsUnread",
        "Revoked",
        "ServiceError",
        "Stale",
        "UnknownRecords",
        "WorkerLostError",
        "WorkspaceError",
    },
    "maxrr.evidence": {
        "Check",
        "Checkpoint",
        "Dossier",
        "Envelope",
        "Log",
        "PublicKey",
        "PublicKeys",
        "SigningKey",
        "check_log",
        "compare_logs",
        "make_key",
        "rotate_key",
    },
    "maxrr.nets": {
        "MLP",
        "LeNet5",
        "NoNetwork",
        "Recipe",
        "Resized",
        "Run",
        "embed",
        "split",
        "tensors",
        "train",
        "train_many",
    },
    "maxrr.parallel": {"Processes", "Ray"},
    "maxrr.service": {"app"},
    "maxrr.serving": {
        "Exported",
        "Revocations",
        "Served",
        "export",
        "export_onnx",
        "load",
    },
    "maxrr.unlearning": {
        "Action",
        "Bundle",
        "Guarantee",
        "Outcome",
        "Plan",
        "Receipt",
        "Replay",
        "advise",
        "contradictions",
        "replay",
    },
    "maxrr.workspace": {
        "Batch",
        "Export",
        "OlderCopyWarning",
        "Status",
        "Ticket",
        "Trace",
        "check_receipt_log",
    },
    "maxrr.svm": {
        "Certificate",
        "ConvergenceError",
        "FlatHeadWarning",
        "PlattScaling",
        "fit_platt",
        "influential_in",
    },
}


def exposed(module: ModuleType) -> set[str]:
    """What a reader finds in the module without looking for underscores; submodules are reached by import."""
    return {name for name, value in vars(module).items() if not name.startswith("_") and not inspect.ismodule(value)}


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_the_frozen_surface(name: str) -> None:
    module = importlib.import_module(name)
    assert len(module.__all__) == len(set(module.__all__))
    assert set(module.__all__) == PUBLIC[name]


@pytest.mark.parametrize("name", PUBLIC)
def test_all_names_exist_and_no_others_do(name: str) -> None:
    module = importlib.import_module(name)
    missing = [public for public in module.__all__ if not hasattr(module, public)]
    assert missing == []
    others = exposed(module) - set(module.__all__)
    assert {
        each for each in others if name != "maxrr.errors" or not issubclass(getattr(module, each), MaxRRError)
    } == set()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_listed(name: str) -> None:
    assert PUBLIC[name] - set(dir(importlib.import_module(name))) == set()


def test_rooms_need_no_import_of_their_own() -> None:
    rooms = sorted(name.partition(".")[2] for name in PUBLIC if name != "maxrr")
    """Nor do they need the packages for the terminal."""
    code = (
        "import sys; sys.modules.update(typer=None, rich=None); import maxrr; maxrr.LinearSVM(); "
        f"print(*(room for room in {rooms} if room in dir(maxrr) and getattr(maxrr, room).__all__))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == rooms


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LinearSVN'"):
        importlib.import_module("maxrr").LinearSVN  # noqa: B018


REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def test_the_reference_has_every_public_room() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    shown = re.findall(r"^\.\. automodule:: (\S+)\n   :members:", pages, flags=re.MULTILINE)
    assert sorted(shown) == sorted({*PUBLIC} - {"maxrr.cli"})
