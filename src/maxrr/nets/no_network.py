"""In the place of a network, where the records are embeddings already."""

from torch import nn


class NoNetwork(nn.Flatten):
    """Says that there is no network: the records are embeddings, and the heads are fitted on them as they are.

    `maxrr.MaxRR.on_features` makes a model with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arguments: tuple[()] = ()
