"""How large a reproduction is: seconds on digits, minutes on two cores, or as the paper's."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lab.heads import Scheme
from maxrr.data.known import PUBLISHED
from maxrr.nets import Recipe

Pixels = Literal["divided", "raw", "standardised"]
"""How networks read pixels: from 0 to 1, from 0 to 255, or with mean 0 and standard deviation 1."""

KNOWN = ("digits", *PUBLISHED)  # data that have a name; all others are files
DIVIDED: Pixels = "divided"  # what results are of that do not say it


@dataclass(frozen=True)
class Profile:
    """Everything that decides a result, but for the seed.

    Attributes
    ----------
    name
        What the profile is called.
    data
        The name of the data.
    heads
        How SVMs for two classes tell many apart.
    ranked, runs, few
        How many models are trained for the ranking, for the table, and for everything else.
    small, large
        The paper's cores, k = 10,000 and 20,000.
    extra
        Random records that the table also forgets.
    many, some
        Records that the verification forgets: the paper's 20,000 and 2,000.
    recipe
        How extractors are trained.
    fractions
        Shares of the support vectors that the sensitivity study forgets. The paper does not say which it took.
    cores, trials
        The sizes of the cores that the study of selectors compares, and with how many models each.
    lengths
        How many runs the rankings have that are compared.
    looks
        Epochs after which networks are looked at for forgetting events; the first for EL2N.
    pixels
        How the networks read pixels.
    """

    name: str
    data: str
    heads: Scheme
    ranked: int
    runs: int
    few: int
    small: int
    large: int
    extra: int
    many: int
    some: int
    recipe: Recipe
    fractions: tuple[float, ...]
    cores: tuple[int, ...]
    trials: int
    lengths: tuple[int, ...]
    looks: tuple[int, ...]
    pixels: Pixels = DIVIDED

    def on(self, data: str) -> "Profile":
        """The same on other data, with the fewer runs: the paper says of MNIST only that little changes.

        Parameters
        ----------
        data : str
            The name of a data set, or the path of a file, whose name without its suffix then names the data.

        Returns
        -------
        Profile
            This profile if these are its data, else the same sizes on other data.

        Raises
        ------
        ValueError
            The file is called as a data set that is known by name, or the sizes of the profile do not fit the data.
        """
        name = Path(data).stem
        if name in KNOWN and name != data:
            raise ValueError(
                f"{data} is called as the data set {name}, and its results would be taken for those of {name}: give "
                "the file another name"
            )
        if name == self.data:
            return self
        if "digits" in (name, self.data):
            raise ValueError(
                f"the sizes of the profile {self.name} are meant for {self.data}, not for {name}: digits go with "
                "smoke, fashion-mnist and mnist with the others"
            )
        return replace(self, data=name, ranked=self.few, runs=self.few)

    def to_json(self) -> dict[str, Any]:
        """What a result file has of the profile.

        Returns
        -------
        dict
            All fields by their names; pixels where they are not divided.
        """
        facts = asdict(self) | {"recipe": self.recipe.facts}
        return {name: value for name, value in facts.items() if (name, value) != ("pixels", DIVIDED)}


SMOKE = Profile(
    "smoke", "digits", "one-vs-rest", ranked=3, runs=2, few=2, small=240, large=480, extra=240, many=480, some=48,
    recipe=Recipe(epochs=8, batch_size=64, lr=8e-3), fractions=(0.5,), cores=(240, 480), trials=2, lengths=(1,),
    looks=(2, 4, 8),
)  # fmt: skip
QUICK = Profile(
    "quick", "fashion-mnist", "one-vs-rest", ranked=2, runs=2, few=2, small=10_000, large=20_000, extra=10_000,
    many=20_000, some=2_000, recipe=Recipe(epochs=8), fractions=(0.5,), cores=(10_000, 20_000), trials=2, lengths=(1,),
    looks=(1, 4, 8),
)  # fmt: skip
PAPER = Profile(
    "paper", "fashion-mnist", "one-vs-rest", ranked=100, runs=100, few=20, small=10_000, large=20_000, extra=10_000,
    many=20_000, some=2_000, recipe=Recipe(), fractions=(0.25, 0.5, 0.75, 1.0), cores=(10_000, 20_000), trials=10,
    lengths=(5, 10, 20), looks=(2, 4, 6, 9, 12, 15, 18),
)  # fmt: skip
# A reading found by trying, before the grid: scikit-learn's SVC, and a shorter training.
SVC = replace(PAPER, name="svc", heads="one-vs-one", runs=20, recipe=Recipe(epochs=11))
# The best readings of the grid with each kind of SVM (`readings`, by support vectors and accuracy alone).
READING = replace(PAPER, pixels="standardised", recipe=Recipe(epochs=5, batch_size=32))
REST = replace(READING, name="reading-rest")
ONE = replace(READING, name="reading-one", heads="one-vs-one")
# Large networks on photographs: the study itself says how they are trained.
PUBLIC = replace(PAPER, name="public-weights", data="cifar-10", few=3)
PROFILES = {profile.name: profile for profile in (SMOKE, QUICK, PAPER, SVC, REST, ONE, PUBLIC)}
