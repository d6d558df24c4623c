"""LeNet-5, the paper's network (`tab:lenet5`)."""

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

    Raises
    ------
    ValueError
        Images are smaller, or there are fewer classes.

    Examples
    --------
    >>> sum(weights.numel() for weights in LeNet5().parameters())
    61706
    """

    def __init__(self, shape: tuple[int, ...] = (1, 28, 28), classes: int = 10) -> None:
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST:
            raise ValueError(
                f"LeNet-5 takes images (channels, height, width) of {SMALLEST} pixels per side or more, not {shape}; "
                "for tables there is MLP"
            )
        if classes < 2:
            raise ValueError(f"there are two classes or more to tell apart, not {classes}")
        channels, height, width = shape
        padding = 2 if min(height, width) < 12 else 0
        inside = ((height // 2 + 2 * padding - 4) // 2) * ((width // 2 + 2 * padding - 4) // 2)
        super().__init__(
            nn.Conv2d(channels, 6, 5, padding=2),
            nn.ReLU(),
            AveragePool2(),
            nn.Conv2d(6, 16, 5, padding=padding),
            nn.ReLU(),
            AveragePool2(),
            nn.Flatten(),
            nn.Linear(16 * inside, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, classes),
        )
        self.arguments = (tuple(map(int, shape)), int(classes))
