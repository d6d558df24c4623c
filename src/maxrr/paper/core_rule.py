"""The rule by which a core is chosen and judged. It was written down before anything of it was measured.

*Choice*, by accuracies on the validation records. The middle is taken around several shares of the ranking's runs. It
stays at one half, unless another share is more accurate by more than two standard errors, paired by seed, over both
sizes together; then it is the most accurate of those. The size is the smaller one, unless the larger is more accurate
by more than a point. Of the ways to choose that the library does not have, `mixed` and `forgetting`, the more accurate
one at each size goes on.

*Report*, on the test records. Differences between the middle and the others in accuracy and in the share of free
records are paired by seed, and their p-values corrected by Holm over all of them: both sizes, three others, two
quantities. Significant is a corrected p below 0.05. The middle stays what a core is by default if, at the chosen size,

- on the data that it was chosen on no other is significantly more accurate, and the middle beats both `frequency` and
  `hash`: it is significantly better in accuracy and gives away no more than ten points of free records, or it is
  significantly better in free records and gives away no more than half a point of accuracy;
- on other data no other is significantly more accurate and by more than half a point.

If this fails, the default becomes `frequency` or `hash`, whichever was more accurate on the validation records at the
chosen size.
"""

from collections.abc import Mapping
from dataclasses import asdict
from statistics import fmean

from maxrr.paper.paired import difference, holm
from maxrr.paper.results import Json

USUAL = 0.5
SHARES = (0.3, 0.4, USUAL, 0.6, 0.7)
MIDDLE, LIBRARYS, OTHERS = "middle", ("frequency", "hash"), ("mixed", "forgetting")
LEVEL = 0.05  # of a corrected p-value
POINT, HALF_A_POINT, TEN_POINTS = 0.01, 0.005, 0.1

Found = Mapping[str, Json]
"""What `frontier.describe_core` says of each core, by its name: for every quantity the values of all seeds."""


def middle_name(share: float) -> str:
    """What the middle around a share of the runs is called."""
    return f"{MIDDLE} at {share:g}"


def chosen(validation: Mapping[str, Found]) -> Json:
    """Share, size and other ways by the rule, with nothing but accuracies on the validation records."""
    share = chosen_share({share: over_sizes(validation, middle_name(share)) for share in SHARES})
    mean = {size: {name: fmean(of["accuracy"]) for name, of in found.items()} for size, found in validation.items()}
    small, large = validation
    gain = mean[large][middle_name(share)] - mean[small][middle_name(share)]
    return {
        "share": share, "size": large if gain > POINT else small,
        "others": {size: max(OTHERS, key=lambda name: mean[size][name]) for size in validation},
        "best": {size: max(found, key=lambda name: found[name]) for size, found in mean.items()},
        "fallback": {size: max(LIBRARYS, key=lambda name: mean[size][name]) for size in validation},
    }  # fmt: skip


def chosen_share(accuracies: Mapping[float, list[float]]) -> float:
    """The usual one, unless others are clearly better; then the best of these. Accuracies are paired by seed."""
    usual = accuracies[USUAL]
    if len(usual) < 2:  # one seed cannot tell
        return USUAL
    better = {}
    for share, values in accuracies.items():
        found = difference(values, usual)
        if found.mean > 2.0 * found.stderr:
            better[share] = found.mean
    return max(better, key=lambda share: better[share], default=USUAL)


def over_sizes(validation: Mapping[str, Found], name: str) -> list[float]:
    """The accuracy of a core for each seed, a mean over the sizes."""
    return [fmean(each) for each in zip(*(found[name]["accuracy"] for found in validation.values()), strict=True)]


def leads(reported: Mapping[str, Found], sizes: Mapping[str, int]) -> list[Json]:
    """By how much the middle is better than the others, in each quantity; corrected over all of these."""
    found = [
        {
            "k": sizes[size], "over": name, "quantity": quantity,
            **asdict(difference(cores[MIDDLE][quantity], of[quantity])),
        }
        for size, cores in reported.items()
        for name, of in cores.items()
        for quantity in ("accuracy", "free")
        if name != MIDDLE
    ]  # fmt: skip
    return [{**one, "holm": p} for one, p in zip(found, holm([one["p"] for one in found]), strict=True)]


def objections(differences: list[Json], k: int, at_home: bool) -> list[str]:
    """What speaks against the middle as the default, by the rule; nothing if it stays."""
    at_size: dict[str, dict[str, Json]] = {}
    for one in differences:
        if one["k"] == k:
            at_size.setdefault(one["over"], {})[one["quantity"]] = one
    said = []
    for name, of in at_size.items():
        accuracy, free = of["accuracy"], of["free"]
        if accuracy["holm"] < LEVEL and accuracy["mean"] < (0.0 if at_home else -HALF_A_POINT):
            said.append(f"{name} is more accurate")
        elif at_home and name in LIBRARYS and not (
            (is_better(accuracy) and free["mean"] >= -TEN_POINTS)
            or (is_better(free) and accuracy["mean"] >= -HALF_A_POINT)
        ):  # fmt: skip
            said.append(f"it does not beat {name}")
    return said


def is_better(one: Json) -> bool:
    return bool(one["holm"] < LEVEL and one["mean"] > 0.0)
