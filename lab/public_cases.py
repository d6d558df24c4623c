"""The cases of the study of public weights: which records are core, where training starts, and how it goes on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lab import public_networks as networks
from lab.lab import Lab
from lab.profiles import Profile
from maxrr import MaxRR
from maxrr.core import Frozen, FullCore, HashCore
from maxrr.core.choice import Core
from maxrr.nets import Recipe

PART = "public-weights"
PUBLIC, SCRATCH, LONGER = "public weights", "from scratch", "from scratch, twice the steps"
KINDS = ("core", "influential", "free")
PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03)  # for features of length 25 or so
SMALL = (1.0, 10.0)  # for those of the network that stands in
TENTH = 0.1
SHARES = (0.0, 0.025, 0.05, 0.2, 0.5, 1.0)  # of the core, beside a tenth
SEEDS = 5
SHARDS, MANY_SHARDS = 4, 8
ASKED = (0.025, 0.05, TENTH, 0.4)  # shares of cores of which a record is asked for
PEOPLE = (1, 5, 20)  # records of one person
REPEATS = 5  # requests of one kind, of which the median counts
HEADS = 3.0  # fitting the heads takes about as long as so many times to embed
TUNED = Recipe(
    epochs=40,
    batch_size=128,
    lr=2e-3,
    body_lr=5e-4,
    optimiser="adamw",
    weight_decay=0.01,
    schedule="cosine",
    warm_up=0.25,
    label_smoothing=0.1,
    augment=("flip", "shift:4"),
)
EPOCHS = {0.025: 40, 0.05: 40, 0.1: 40, 0.2: 20, 0.5: 11, 1.0: 7}  # larger cores need fewer of them
SCRATCHED = Recipe(
    epochs=40,
    batch_size=512,
    lr=0.3,
    optimiser="sgd",
    weight_decay=5e-4,
    schedule="cosine",
    warm_up=0.2,
    label_smoothing=0.1,
    augment=("flip", "shift:4"),
)


@dataclass(frozen=True)
class Case:
    """What is compared: where training starts, the share of the core, in how many shards, and the seed."""

    start: str
    share: float
    seed: int
    shards: int = 1

    @property
    def row(self) -> str:
        """
        >>> Case(PUBLIC, 0.1, 2, shards=4).row, Case(SCRATCH, 0.025, 0).row
        ('public weights, core 10 %, 4 shards', 'from scratch, core 2.5 %')
        """
        kind = f"core {100 * self.share:g} %"
        return ", ".join([self.start, kind, *([f"{self.shards} shards"] if self.shards > 1 else [])])

    @property
    def name(self) -> str:
        return f"{self.row}, seed {self.seed}"

    @property
    def timed(self) -> bool:
        """Whether requests are made, and timed: at the first seed."""
        return self.seed == 0 and self.start != LONGER

    @property
    def asked(self) -> bool:
        """Whether a core record is asked for; elsewhere that takes as long as training, embedding and heads did."""
        return self.timed and self.start == PUBLIC and self.share in ASKED

    @property
    def replayed(self) -> bool:
        """Whether that request is replayed, which trains once more."""
        return self.asked and self.share == TENTH and self.shards == 1


def cases(profile: Profile) -> list[Case]:
    """What is measured, the most important first."""
    usual = share_of(profile)
    small, ends = [Case(PUBLIC, usual, seed) for seed in range(SEEDS)], [Case(PUBLIC, share, 0) for share in (0.0, 1.0)]
    shards = [Case(PUBLIC, usual, seed, SHARDS) for seed in range(SEEDS)]
    if profile.data == "digits":  # a look at whether everything works
        return [*small[:2], *ends, Case(PUBLIC, usual, 0, shards=2), Case(SCRATCH, usual, 0)]
    if is_far(profile):  # accuracy and kinds of records: requests are timed at the first seed, which is left out
        return [*small[1:4], *(replace(end, seed=1) for end in ends), shards[1]]
    scratch = [Case(SCRATCH, share, seed) for seed in range(SEEDS) for share in (1.0, 0.5, TENTH)]
    others = [Case(PUBLIC, share, seed) for seed in range(SEEDS) for share in SHARES if share or not seed]
    longer = [Case(LONGER, share, 0) for share in (1.0, 0.5, TENTH)]
    many = [Case(PUBLIC, usual, seed, MANY_SHARDS) for seed in range(1, SEEDS)]
    first, later = [[case for case in (*others, *scratch) if (case.seed == 0) is now] for now in (True, False)]
    return [*small, *first, shards[0], *later, *shards[1:], *longer, *many]


def is_far(profile: Profile) -> bool:
    """Whether the data are far from what the public weights learned from, and looked at for that alone."""
    return profile.data not in ("cifar-10", "digits")


def share_of(profile: Profile) -> float:
    """The share of the small core: a tenth, and more of a few digits."""
    return 0.4 if profile.data == "digits" else TENTH


def work(lab: Lab, case: Case) -> float:
    """About how many images go through the network: forwards and back count as three, requests as what they train."""
    trained = 3.0 * case.share * len(lab.training) * recipe_of(lab, case).epochs
    again = (case.asked + case.replayed) / case.shards
    return (1.0 + again) * (trained + HEADS * len(lab.training))


# Models


def is_small(lab: Lab) -> bool:
    """Whether small networks stand in for the large ones: on small images, for a look at whether everything works."""
    return max(lab.training.shape) < 28


def recipe_of(lab: Lab, case: Case) -> Recipe:
    """How a case is trained."""
    if is_small(lab):
        return replace(lab.profile.recipe, optimiser="adamw", schedule="cosine", warm_up=0.25)
    precision = "bfloat16" if lab.device.type == "cuda" else "float32"
    if case.start != PUBLIC:
        steps = SCRATCHED.epochs * (2 if case.start == LONGER else 1)
        return replace(SCRATCHED, epochs=round(steps / case.share), precision=precision)
    epochs = EPOCHS[case.share] if case.share else 1
    return replace(TUNED, epochs=epochs, precision=precision)


def network_of(lab: Lab, case: Case) -> tuple[Callable[..., Any], str]:
    """The function that makes the network of a case, and where training starts."""
    if is_small(lab):
        if case.start != PUBLIC:
            return networks.small, "seed"
        return (networks.stand_in if case.share else networks.stand_in_frozen), networks.STAND_IN
    if case.start != PUBLIC:
        return networks.ResNet9, "seed"
    made = networks.efficientnet if case.shards == 1 else networks.efficientnet_narrow
    return (made if case.share else networks.efficientnet_frozen), networks.ORIGIN


def key_of(lab: Lab, case: Case) -> str:
    """The key of the hash core of a case: each seed has its own, so that seeds have other cores, too."""
    return f"{PART} {lab.seed} {case.seed}"


def core_of(lab: Lab, case: Case) -> Core:
    """The core of a case."""
    if case.share in (0.0, 1.0):
        return FullCore() if case.share else Frozen()
    return HashCore(case.share, key=key_of(lab, case), shards=case.shards)


def model_of(lab: Lab, case: Case, penalty: float) -> MaxRR:
    """The model of a case, not fitted yet."""
    network, start = network_of(lab, case)
    return MaxRR(
        network,
        core_of(lab, case),
        start=start,
        C=penalty,
        seed=lab.seed + case.seed,
        device=str(lab.device),
        train=recipe_of(lab, case) if case.share else None,
        verbose=False,
    )
