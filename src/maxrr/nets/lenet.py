"""LeNet-5, the paper's network (`tab:lenet5`)."""

import math

from torch import nn

from maxrr.nets.layers import Layers
from maxrr.nets.pooling import AveragePool2

SMALLEST = 4  # pixels per side


class LeNet5(Layers):
    """LeNet-5 with ReLU and average pooling; 61,706 parameters on 28 × 28 pixels.

    Gives scores; the softmax of the paper's table is part of the loss.

    Parameters
    ----------
    shape : (channels, height, width)
        The shape of one image, with at least 4 pixels per side. The first convolution is padded by 2, so that 28 × 28
        pixels give the 400 values of the original. Below 12 pixels per side the second convolution is padded as well,
        since nothing would be left otherwise.
    classes : int
        How many classes to tell apart, two or more.
    width : float
        How wide the layers are, relative to the original: above 0, 1 by default. With 0.5 there are 3 and 8 channels,
        60 and 42 units.
    features : int, optional
        How many units the last hidden layer has, whatever the width: the features that heads stand on, by default 84
        times the width. For the extractors of several shards, whose features add up.

    Raises
    ------
    ValueError
        Images are smaller, there are fewer classes, or width or features are none.

    Examples
    --------
    >>> sum(weights.numel() for weights in LeNet5().parameters())
    61706
    """

    def __init__(
        self, shape: tuple[int, ...] = (1, 28, 28), classes: int = 10, width: float = 1.0, features: int | None = None
    ) -> None:  # fmt: skip
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST:
            raise ValueError(
                f"LeNet-5 takes images (channels, height, width) of {SMALLEST} pixels per side or more, not {shape}; "
                "for tables there is MLP"
            )
        if classes < 2:
            raise ValueError(f"there are two classes or more to tell apart, not {classes}")
        if not 0.0 < width < math.inf:
            raise ValueError(f"a width is above 0, not {width}")
        if features is not None and features < 1:
            raise ValueError(f"there is one feature or more, not {features}")
        channels, *sides = shape
        padding = 2 if min(sides) < 12 else 0
        inside = math.prod((side // 2 + 2 * padding - 4) // 2 for side in sides)
        first, second, third, last = (max(1, round(width * size)) for size in (6, 16, 120, 84))
        last = last if features is None else int(features)
        super().__init__(
            nn.Conv2d(channels, first, 5, padding=2),
            nn.ReLU(),
            AveragePool2(),
            nn.Conv2d(first, second, 5, padding=padding),
            nn.ReLU(),
            AveragePool2(),
            nn.Flatten(),
            nn.Linear(second * inside, third),
            nn.ReLU(),
            nn.Linear(third, last),
            nn.ReLU(),
            nn.Linear(last, classes),
        )
        # As files have named it from the beginning, where it is the original.
        sizes = [] if width == 1.0 and features is None else [float(width)]
        sizes += [] if features is None else [int(features)]
        self.arguments = (tuple(map(int, shape)), int(classes), *sizes)
