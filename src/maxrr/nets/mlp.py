"""A plain network for tables."""

from torch import nn

from maxrr.nets.layers import Layers


class MLP(Layers):
    """Linear layers with ReLU between them.

    Parameters
    ----------
    inputs : int
        How many columns the table has.
    classes : int
        How many classes to tell apart, two or more.
    hidden : tuple of int
        Widths of the layers in between. The last one is the number of features of a record.

    Raises
    ------
    ValueError
        There is no input, no hidden layer, or fewer than two classes.
    """

    def __init__(self, inputs: int, classes: int, hidden: tuple[int, ...] = (128, 64)) -> None:
        if inputs < 1 or classes < 2 or not hidden or min(hidden) < 1:
            raise ValueError(
                f"an MLP has one input or more, two classes or more and hidden layers of one unit or more, "
                f"not inputs={inputs}, classes={classes}, hidden={hidden}"
            )
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in zip((inputs, *hidden), hidden, strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden[-1], classes))
        self.arguments = (int(inputs), int(classes), tuple(map(int, hidden)))
