"""How a model was made: recorded when it is fitted, and used whenever a part of it is made again.

Parameters of the estimator may be changed afterwards. What was trained with the old ones must not be retrained with
the new.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Choice
from maxrr.data import Dataset
from maxrr.nets import Environment, Recipe, embed, split, train
from maxrr.nets.seeding import Network
from maxrr.progress import Report
from maxrr.svm import LinearSVM
from maxrr.unlearning import flat


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything but the records that a model's bytes depend on."""

    network: Network  # our own copy of it
    frozen: bool  # the network is the extractor, and is not trained
    seed: int
    recipe: Recipe
    C: float
    device: str | None
    threads: int
    environment: Environment

    def extractor(self, records: Dataset, choice: Choice, report: Report | None = None) -> nn.Module:
        """The extractor, trained on those of the records that are core."""
        if self.frozen:
            network = self.network if isinstance(self.network, nn.Module) else self.network()
            return copy.deepcopy(network).cpu().eval()
        core = records.select(np.intersect1d(choice.ids, records.ids))
        run = train(
            self.network, core, self.seed, epochs=self.recipe.epochs, batch_size=self.recipe.batch_size,
            lr=self.recipe.lr, device=self.device, threads=self.threads, report=report,
        )  # fmt: skip
        return split(run.network)[0]

    def features(self, extractor: nn.Module, records: Dataset, report: Report | None = None) -> NDArray[Any]:
        """The records' features."""
        return embed(extractor, records, device=self.device, report=report)

    def head(self, features: NDArray[Any], records: Dataset) -> LinearSVM:
        """The head, fitted on the features of these records. Whoever takes it over warns if it is flat."""
        with flat.quietly():
            return LinearSVM(C=self.C).fit(features, records.labels)
