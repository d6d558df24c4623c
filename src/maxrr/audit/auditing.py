"""`audit`: make models with and without the forgotten records, and attack them in the same way as the audited one."""

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxrr.audit.attacks import ATTACKS, FEATURES, Evidence, Floats, Labels, Signals, View
from maxrr.audit.case import Case, make_case, working_copy
from maxrr.audit.findings import AttackResult, AuditReport, ExposedRecord, decide, rank_p_value, rounding
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Shadows, shadow_models, with_and_without
from maxrr.data import Dataset
from maxrr.files import Lock
from maxrr.nets.recipe import Environment
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.plain_text import count
from maxrr.progress import Progress
from maxrr.unlearning import MaxRR, Receipt
from maxrr.unlearning.commitment import set_aside_of
from maxrr.unlearning.tombstones import id_hmac

MOST_EXPOSED = 10
AUDITED = Counter[str]()  # by the digest of the receipt: models in memory, of this process


def audit(
    model: MaxRR, receipt: Receipt, forgotten: Dataset, test: Dataset, *,
    shadows: int = 64, device: str | None = None, folder: str | Path | None = None,
    progress: Progress | None = None, engine: EngineLike = None,
) -> AuditReport:  # fmt: skip
    """Try to tell from a model that it once had the records which it has forgotten.

    Four attacks compare it with models retrained without the records, and LiRA decides: the paper's threshold, LiRA,
    RMIA, and LiRA on features, where an extractor may have seen the records. How the model treats test records is no
    measure: hard records score oddly there as well.

    Parameters
    ----------
    model : MaxRR
        The model after the request, in memory, or that of a workspace, which says how raw records are read and notes
        the audit.
    receipt : Receipt
        The receipt of the request.
    forgotten : Dataset
        The forgotten records, which the model no longer has. They are checked against the receipt.
    test : Dataset
        Records that no model saw: all that were set aside at `fit`. Others are a caveat on the finding.
    shadows : int
        How many shadow models to train, 32 or more: two fifths with the records, the others without. More find smaller
        traces. Choose the number before you see a result.
    device : optional
        Where networks are trained, as in `maxrr.nets.train`.
    folder : optional
        Where the answers of the models are kept, to go on after an interruption. It is deleted at the end, unless
        something else is in it. Networks that saw the records are never written to the disk.
    progress : optional
        Called as the work goes on, with how many models are made of how many.
    engine : optional
        Where models are made, as in `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By default
        on this machine. Workers get the records, the forgotten ones too, and no key. On the CPU the findings are the
        same from every engine, on machines of the same kind. A model that fails does not end the work on others where
        there is a folder.

    Returns
    -------
    AuditReport
        What the attacks found, and how much they could have found.

    Raises
    ------
    DataError
        Model, receipt and records do not belong together, or test records were trained on.
    ValueError
        There are too few shadow models.
    """
    started = time.perf_counter()
    with_records, retrained = with_and_without(shadows)
    model = working_copy(model)
    case = make_case(model, receipt, forgotten, test)
    maker = Shadows(case, device, None, progress, engine_from(engine))
    environment = Environment.here(torch.device(maker.here), case.fitted.blueprint.threads)
    if maker.here != str(maker.place):
        environment = replace(environment, device=maker.place.type)  # of devices that only workers have
    with scratch_space(folder, digest(case, environment)) as maker.folder:
        views = maker.views([*shadow_models(case, with_records, retrained), maker.again])
        again = {kind: views[kind].pop() for kind in (BEFORE, RETRAINED)}  # which were asked for last
        found = judge(case, views, {"after": maker.own(model), **again})
    earlier = count_audit(model, receipt.digest)
    return AuditReport(
        receipt=receipt.number, guarantee=receipt.guarantee, model_hash=case.fitted.model_hash,
        records=len(case.forgotten), core_touched=case.touches_core, **found,
        assumed=assumptions(case), caveats=caveats(case, test, earlier), environment=asdict(environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started, earlier=earlier,
    )  # fmt: skip


def digest(case: Case, environment: Environment) -> str:
    """Name the case, so that answers kept for one case are never used for another."""
    parts = (
        case.fitted.model_hash, case.fitted.records.content_hash, case.forgotten.content_hash(),
        case.test.content_hash(), str(case.sample.tolist()), repr(environment),
    )  # fmt: skip
    return "audit-" + hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@contextmanager
def scratch_space(folder: str | Path | None, name: str) -> Iterator[Path | None]:
    """Lock a folder for this audit alone; None where none is wanted, or the same audit runs already."""
    if folder is None:
        yield None
        return
    place = Path(folder) / name
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        lock = Lock(place / "lock")
    except BlockingIOError:
        yield None
        return
    try:
        yield place
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):  # where something else is in it
            place.parent.rmdir()
    finally:
        lock.release()


def labels_of(case: Case) -> Labels:
    """The labels of the records that models are asked about."""
    return Labels(case.forgotten.labels, case.retained.labels[case.sample], case.test.labels)


def evidence_of(case: Case, views: Mapping[str, Sequence[View]]) -> tuple[Evidence, list[Signals]]:
    """Return the shadow models' signals, and apart from them those of models that kept the records in all parts."""
    labels = labels_of(case)
    seen = {kind: [Signals.of(view, labels) for view in of_kind] for kind, of_kind in views.items()}
    return Evidence(seen[KEPT if case.touches_core else BEFORE], seen[RETRAINED]), seen[BEFORE]


def judge(case: Case, views: Mapping[str, Sequence[View]], targets: Mapping[str, View]) -> dict[str, Any]:
    """Run all attacks, and return the fields of the report that they fill."""
    evidence, before = evidence_of(case, views)
    models = {name: Signals.of(view, labels_of(case)) for name, view in targets.items()}
    attacks = [attack for attack in ATTACKS if case.touches_core or attack != FEATURES]
    mine = evidence.scores("lira", models["after"])
    theirs = in_their_place(evidence, "lira", evidence.remembering)
    return {
        "finding": decide(mine, theirs, in_their_place(evidence, "lira", before)),
        "attacks": {
            attack: {name: AttackResult.of(attack, evidence.scores(attack, model)) for name, model in models.items()}
            for attack in attacks
        },
        "claimed_unlearned": {name: float(np.mean(model.beyond_threshold <= 0.0)) for name, model in models.items()},
        "exposed": most_exposed(case, mine),
    }


def in_their_place(evidence: Evidence, attack: str, models: Sequence[Signals]) -> list[Floats]:
    """Score each of these models as if it were the audited one, without the model that shares its extractor."""
    return [evidence.scores(attack, model, number) for number, model in enumerate(models)]


def most_exposed(case: Case, scores: Floats) -> list[ExposedRecord]:
    """Return the forgotten records that stand out most in the audited model, in either direction."""
    near, away = rounding(scores), np.abs(scores - np.median(scores, axis=0))
    p_values = rank_p_value(away[0], away[1:], tolerance=near)
    largest = np.repeat(away[1:].max(axis=1)[:, None], away.shape[1], axis=1)
    corrected = rank_p_value(away[0], largest, tolerance=near)
    order = np.lexsort((-away[0], p_values))[:MOST_EXPOSED]
    key, ids = case.fitted.key, case.forgotten.ids.tolist()
    return [
        ExposedRecord(
            id_hmac(key, ids[row]).hex(), case.forgotten.class_names[case.forgotten.labels[row]],
            float(scores[0, row]), float(p_values[row]), float(corrected[row]),
        )
        for row in order
    ]  # fmt: skip


def assumptions(case: Case) -> list[str]:
    """List the assumptions under which the finding holds."""
    found = [
        "the test records come from where the training records come from",
        "shadow models are trained by the recorded recipe, from seeds of their own",
        "the records were not chosen by what this very model makes of them: nobody looked at it first",
    ]
    if not case.touches_core:
        found.append("no extractor saw the records, so that only the heads were attacked")
    later = case.fitted.requests - case.receipt.number
    if later:
        asked = count(later, "request was", "requests were")
        found.append(f"{asked} answered since: what is audited is the model as it is now")
    if not case.fitted.choice.unconditional:
        found.append("the core is given: that the ranking saw the records is not looked for")
    return found


def count_audit(model: MaxRR, receipt: str) -> int:
    """Count an audit, and return how many of the same receipt came to a finding before."""
    if model._note_audit is not None:
        return model._note_audit(receipt)
    AUDITED[receipt] += 1
    return AUDITED[receipt] - 1


def caveats(case: Case, test: Dataset, earlier: int) -> list[str]:
    """List what sets the audited model apart from all shadow models, and choices that may have changed the finding."""
    fitted, found = case.fitted, []
    others = len({id_hmac.hex() for id_hmac in fitted.in_extractor} - set(case.receipt.core_tombstones))
    if others:
        found.append(f"the extractor also saw {count(others, 'core record')} of other requests, as no shadow model did")
    if fitted.adopted:
        found.append("nobody here knows how the extractor was trained; shadow models follow the recorded recipe")
    gone = set(case.forgotten.labels.tolist()) - set(fitted.codes.tolist())
    if gone:
        names = ", ".join(case.forgotten.class_names[label] for label in sorted(gone))
        found.append(f"the class {names} is gone: retrained models say the same of all its records, and little shows")
    if fitted.technique:
        found.append("the extractor is the work of a technique, those of shadow models come from the recipe alone")
    if fitted.set_aside is None:
        found.append("nobody said at the fit which records are for testing: others may give another finding")
    elif set_aside_of(fitted.key, test) != fitted.set_aside:
        found.append(
            f"the test records are not those that were set aside when the model was fitted: "
            f"{fitted.set_aside.records:,} were, and these {len(test):,} may give another finding"
        )
    elif copies := len(test) - len(case.test):
        found.append(f"{copies:,} of the {len(test):,} test records have values that were learned, and are left out")
    if earlier:
        found.append(f"it is audit number {earlier + 1:,} of this receipt: of many some find something by chance")
    return found
