"""`audit`: make models with and without the forgotten records, and attack them in the same way as the audited one."""

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxrr.audit import distances
from maxrr.audit.attacks import cross_entropy, logit
from maxrr.audit.case import Case, make_case, working_copy
from maxrr.audit.distances import Distance
from maxrr.audit.findings import decide, rank_of_first, rank_p_value, rounding
from maxrr.audit.results import VERSION, AttackResult, AuditReport, Curve, EffectOnOthers, ExposedRecord
from maxrr.audit.roc import Floats, auc, balanced_accuracy, roc, roc_by_class, tpr_at
from maxrr.audit.scores import ATTACKS, ON_FEATURES, STRONG, Evidence, Labels, Signals
from maxrr.audit.shadows import BEFORE, KEPT, LEAST, RETRAINED, ModelProgress, ShadowCounts, ShadowPool, Shadows, View
from maxrr.data import Dataset
from maxrr.files import Lock
from maxrr.nets import Environment
from maxrr.nets.inputs import device_on
from maxrr.parallel import EngineLike, engine_from
from maxrr.progress import Progress
from maxrr.unlearning import MaxRR, Receipt, flat_heads
from maxrr.unlearning.set_aside import set_aside_of
from maxrr.unlearning.tombstones import id_hmac

POINTS = 200  # of a curve that is kept
MOST_EXPOSED = 10
COMPARED = 2_000  # test records on which models are held against each other
AUDITED = Counter[str]()  # by the digest of the receipt: models in memory, of this process


def audit(
    model: MaxRR, receipt: Receipt, forgotten: Dataset, test: Dataset, *,
    attacks: Sequence[str] = ("threshold", *STRONG, *ON_FEATURES), shadows: int = 64,
    device: str | None = None, folder: str | Path | None = None,
    pool: ShadowPool | None = None, progress: Progress | None = None, engine: EngineLike = None,
) -> AuditReport:  # fmt: skip
    """Try to tell from a model that it once had the records which it has forgotten.

    Attacks compare it with models retrained without the records. How it treats test records is no measure: hard records
    score oddly there as well.

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
    attacks
        Some of "threshold" (the paper's), "lira", "rmia", "features" and "probe" (which look at the extractor, where
        it may have seen the records), "lira-logit", "lira-offline", "loss", "entropy" and "modified-entropy". LiRA
        decides; if it is not among them, the first one does.
    shadows : int
        How many shadow models to train, 8 or more: two fifths with the records, the others without. More find smaller
        traces. Choose the number before you see a result (`plan_audit`).
    device : optional
        Where networks are trained, as in `maxrr.nets.train`.
    folder : optional
        Where the answers of the models are kept, to go on after an interruption. It is deleted at the end, unless
        something else is in it. Networks that saw the records are never written to the disk.
    pool : optional
        Extractors to share with other audits of this model. They are trained in this process: not for an engine.
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
        The options cannot be used, as in `check_options`.
    """
    started = time.perf_counter()
    check_options(attacks, shadows)
    chosen_engine = engine_from(engine)
    if chosen_engine is not None and pool is not None:
        raise ValueError("workers of an engine train extractors of their own: leave out either the pool or the engine")
    place = device_on(chosen_engine, device)
    model = working_copy(model)
    case = make_case(model, receipt, forgotten, test)
    chosen = [attack for attack in attacks if case.touches_core or attack not in ON_FEATURES]
    if not chosen:
        raise ValueError("no extractor saw the records, so that their features have nothing to give away: ask for lira")
    counts = ShadowCounts.of(shadows, case.touches_core)
    environment = environment_of(case, place)
    with scratch_space(folder, digest(case, environment)) as kept_in:
        maker = Shadows(case, here(place), kept_in, ModelProgress(progress, counts.networks), pool)
        if chosen_engine is not None:
            maker.prepare(chosen_engine, place, [*counts.wanted(case), maker.again])
        views = counts.make(maker)
        targets = {"after": maker.own(model), **maker.rebuilt()}
        found = judge(case, views, targets, chosen) | {"heads_distance": heads_distance_of(case)}
    earlier = count_audit(model, receipt.digest)
    return AuditReport(
        receipt=receipt.number, guarantee=receipt.guarantee, model_hash=case.fitted.model_hash,
        records=len(case.forgotten), core_touched=case.touches_core, with_records=counts.with_records,
        retrained=counts.retrained, **found,
        assumed=assumptions(case), caveats=[*choices(chosen), *caveats(case, test, earlier)],
        environment=asdict(environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started, earlier=earlier,
    )  # fmt: skip


def check_options(attacks: Sequence[str], shadows: int) -> None:
    """Check the options of an audit before anything is trained.

    Parameters
    ----------
    attacks, shadows
        As in `audit`.

    Raises
    ------
    ValueError
        An attack is unknown or named twice, or there are too few shadow models.
    """
    if isinstance(attacks, str) or len(set(attacks)) < len(attacks):
        raise ValueError(f"attacks are a list of different names, not {attacks!r}")
    unknown = [attack for attack in attacks if attack not in ATTACKS]
    if unknown or not attacks:
        raise ValueError(f"attacks are {', '.join(ATTACKS)}; not {', '.join(unknown) or 'none'}")
    if shadows < LEAST:
        raise ValueError(f"an audit takes {LEAST} shadow models or more, not {shadows}")


def here(place: torch.device) -> str:
    """Where this process looks at models, if they are made there."""
    return str(place) if place.type == "cpu" or torch.cuda.is_available() else "cpu"


def environment_of(case: Case, place: torch.device) -> Environment:
    """Of the networks; of graphics processors that only workers have, no name is known here."""
    found = Environment.here(torch.device(here(place)), case.fitted.blueprint.threads)
    return found if here(place) == str(place) else replace(found, device=place.type)


def digest(case: Case, environment: Environment) -> str:
    """A name for the views of a case: views of another case cannot be used for it."""
    datasets = (case.forgotten.content_hash(), case.test.content_hash())
    made = (str(VERSION), repr(environment))
    parts = (
        case.fitted.model_hash, case.fitted.records.content_hash, *datasets,
        str(case.sample.tolist()), *made,
    )  # fmt: skip
    return "audit-" + hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@contextmanager
def scratch_space(folder: str | Path | None, name: str) -> Iterator[Path | None]:
    """A folder that no other audit works in; None where none is wanted, or the same audit runs already.

    When all is done it is deleted, and when something is raised it stays, to go on from.
    """
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
    return Labels(case.forgotten.labels, case.retained.labels[case.sample], case.test.labels)


def judge(case: Case, views: dict[str, list[View]], targets: dict[str, View], attacks: list[str]) -> dict[str, Any]:
    """All that a report says of the attacks."""
    labels = labels_of(case)
    seen = {kind: [Signals.of(view, labels) for view in of_kind] for kind, of_kind in views.items()}
    evidence = Evidence(seen[KEPT if case.touches_core else BEFORE], seen[RETRAINED])
    models = {name: Signals.of(view, labels) for name, view in targets.items()}
    scores = {attack: {name: evidence.scores(attack, model) for name, model in models.items()} for attack in attacks}
    results = {
        attack: {name: attack_result(attack, evidence, of_model) for name, of_model in of_attack.items()}
        for attack, of_attack in scores.items()
    }
    deciding = deciding_of(attacks)
    mine = scores[deciding]["after"]
    theirs = in_their_place(evidence, deciding, evidence.remembering)
    whole = theirs
    if case.touches_core:
        whole = in_their_place(evidence, deciding, seen[BEFORE])
    counted = partial(evidence.counted, deciding)
    return {
        "finding": decide(deciding, counted(mine), [*map(counted, theirs)], [*map(counted, whole)]),
        "attacks": results,
        "claimed_unlearned": {name: float(np.mean(model.beyond_threshold <= 0.0)) for name, model in models.items()},
        "by_class": by_class(case, mine),
        "exposed": most_exposed(case, mine),
        "distances": distances_of(targets["after"], views[RETRAINED]),
        "others": others(labels, views[BEFORE], views[RETRAINED], targets),
    }  # fmt: skip


def deciding_of(attacks: Sequence[str]) -> str:
    """The attack that decides. It is fixed before any result is known."""
    return "lira" if "lira" in attacks else attacks[0]


def in_their_place(evidence: Evidence, attack: str, models: Sequence[Signals]) -> list[Floats]:
    """Scores as for the audited model, with each of these in its place. None is scored by one on its own extractor."""
    return [evidence.scores(attack, model, number) for number, model in enumerate(models)]


def attack_result(attack: str, evidence: Evidence, scores: Floats) -> AttackResult:
    """One attack against one model, whose scores are in row 0."""
    counted = evidence.counted(attack, scores)
    p = rank_of_first(counted).p
    return AttackResult(float(counted[0].mean()), p, curve_of(scores) if scores.shape[1] > 1 else None)


def curve_of(scores: Floats) -> Curve:
    """The ROC curve of the first model's records against the same records in the other models."""
    mine, theirs = scores[0], scores[1:].ravel()
    drawn = roc(mine, theirs)
    range_ = np.quantile([auc(roc(row, np.delete(scores[1:], number, axis=0).ravel())) for number, row in
                          enumerate(scores[1:])], [0.025, 0.975])  # fmt: skip
    shown = np.unique(np.linspace(0, len(drawn.fpr) - 1, POINTS).round().astype(int))
    early = np.searchsorted(drawn.fpr, np.geomspace(1e-4, 1.0, POINTS), side="right") - 1
    shown = np.unique(np.concatenate([shown, early]))
    return Curve(
        auc(drawn), (float(range_[0]), float(range_[1])), balanced_accuracy(drawn), tpr_at(drawn, 0.01),
        tpr_at(drawn, 0.001), drawn.fpr[shown].tolist(), drawn.tpr[shown].tolist(),
    )  # fmt: skip


def by_class(case: Case, scores: Floats) -> dict[str, float]:
    """The AUC for each class of forgotten records."""
    labels = case.forgotten.labels
    if scores.shape[1] < 2:
        return {}
    curves = roc_by_class(scores[0], labels, scores[1:].ravel(), np.tile(labels, len(scores) - 1))
    return {case.forgotten.class_names[label]: auc(curve) for label, curve in curves.items()}


def most_exposed(case: Case, scores: Floats) -> list[ExposedRecord]:
    """The forgotten records that stand out most in the audited model, remembered or shunned."""
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


def distances_of(audited: View, retrained: Sequence[View]) -> dict[str, Distance]:
    """The distances of the audited model to retrained ones, on some of the test records."""

    def differ(one: Floats, other: Floats) -> float:
        return distances.disagreement(one.argmax(axis=1), other.argmax(axis=1))

    def diverge(one: Floats, other: Floats) -> float:
        return (distances.kl(one, other) + distances.kl(other, one)) / 2

    mine, theirs = audited.test[:COMPARED], [view.test[:COMPARED] for view in retrained]
    return {
        "disagreement of predictions": beside(differ, mine, theirs),
        "divergence of probabilities": beside(diverge, mine, theirs),
    }


def heads_distance_of(case: Case) -> float | None:
    """Between the audited heads and those fitted from scratch on the retained records; 0 if they are the same."""
    if case.touches_core:
        return None
    blueprint, heads = case.fitted.blueprint, case.fitted.heads
    with flat_heads.quietly():
        scratch = blueprint.fit_heads(blueprint.embed(case.fitted.extractor, case.retained), case.retained)
    return distances.heads_distance(heads.coef_, heads.intercept_, scratch.coef_, scratch.intercept_)


def beside(distance: Callable[[Floats, Floats], float], audited: Floats, retrained: Sequence[Floats]) -> Distance:
    pairs = np.zeros((len(retrained), len(retrained)))
    for row in range(len(retrained)):
        for column in range(row):
            pairs[row, column] = pairs[column, row] = distance(retrained[row], retrained[column])
    return distances.beside([distance(audited, view) for view in retrained], pairs)


def others(
    labels: Labels, with_records: Sequence[View], retrained: Sequence[View], targets: dict[str, View]
) -> EffectOnOthers:
    """What forgetting did to retained records."""

    def told_from_test(view: View) -> float:
        members = cross_entropy(view.retained, labels.retained)
        return auc(roc(-members, -cross_entropy(view.test, labels.test)))

    def sure(views: Sequence[View]) -> Floats:
        return np.stack([logit(view.retained, labels.retained) for view in views])

    bound = np.quantile(sure(with_records), 0.95, axis=0)
    shares = np.mean(sure([targets["after"], *retrained]) > bound, axis=1)
    low, high = np.quantile(shares[1:], [0.025, 0.975])
    return EffectOnOthers(
        len(labels.retained), told_from_test(targets["before"]), told_from_test(targets["after"]),
        told_from_test(targets["retrained"]), float(shares[0]), float(np.mean(shares[1:])), (float(low), float(high)),
        rank_p_value(float(shares[0]), shares[1:]),
    )  # fmt: skip


def assumptions(case: Case) -> list[str]:
    """What a reader should know before believing the finding."""
    found = [
        "the test records come from where the training records come from",
        "shadow models are trained by the recorded recipe, from seeds of their own",
        "the records were not chosen by what this very model makes of them: nobody looked at it first",
    ]
    if not case.touches_core:
        found.append("no extractor saw the records, so that only the heads were attacked")
    later = case.fitted.requests - case.receipt.number
    if later:
        asked = "request was" if later == 1 else "requests were"
        found.append(f"{later:,} {asked} answered since: what is audited is the model as it is now")
    if not case.fitted.choice.unconditional:
        found.append("the core is given: that the ranking saw the records is not looked for")
    return found


def count_audit(model: MaxRR, receipt: str) -> int:
    """Count an audit that came to a finding, and say how many of the same receipt did before, copies included."""
    if model._note_audit is not None:
        return model._note_audit(receipt)
    AUDITED[receipt] += 1
    return AUDITED[receipt] - 1


def choices(attacks: Sequence[str]) -> list[str]:
    """What was chosen otherwise than by default: whoever may choose after looking may choose the finding."""
    deciding = deciding_of(attacks)
    return [] if deciding == "lira" else [f"{deciding} decides instead of LiRA, because somebody asked for it"]


def caveats(case: Case, test: Dataset, earlier: int) -> list[str]:
    """What may make the finding another one: what no shadow model has, and what somebody could choose or repeat."""
    fitted, found = case.fitted, []
    others = len({id_hmac.hex() for id_hmac in fitted.left} - set(case.receipt.core_tombstones))
    if others:
        found.append(
            f"the extractor also saw {others:,} core {'record' if others == 1 else 'records'} forgotten by other "
            "requests, which no shadow model did"
        )
    if fitted.adopted:
        found.append(
            "the extractor was trained elsewhere, nobody here knows how; those of shadow models are trained by the "
            "recorded recipe"
        )
    gone = set(case.forgotten.labels.tolist()) - set(fitted.codes.tolist())
    if gone:
        names = ", ".join(case.forgotten.class_names[label] for label in sorted(gone))
        found.append(
            f"the class {names} is gone: retrained models say the same of all its records, and little is told apart"
        )
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
        found.append(
            f"it is audit number {earlier + 1:,} of this receipt: of so many some find something by chance, or nothing"
        )
    return found
