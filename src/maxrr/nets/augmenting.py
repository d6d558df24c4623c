"""Images that are varied a little in every epoch, by numbers that belong to the seed, the epoch and the record."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from maxrr.nets.seeding import stream

VARIATIONS = 3  # the stream below the seed


def several(augment: str | Iterable[str]) -> tuple[str, ...]:
    """One variation or several, as a tuple."""
    return (augment,) if isinstance(augment, str) else tuple(augment)


@dataclass(frozen=True)
class Augmentation:
    """Which variations there are: turned left to right, and moved by up to some pixels."""

    flip: bool = False
    shift: int = 0

    @classmethod
    def of(cls, words: tuple[str, ...]) -> "Augmentation":
        """From words such as "flip" and "shift:2", each at most once."""
        known = {word.partition(":")[0]: word.partition(":")[2] for word in words}
        pixels = known.get("shift", "1")
        sound = not known.keys() - {"flip", "shift"} and not known.get("flip") and pixels.isdecimal()
        if len(known) != len(words) or not sound or not 1 <= int(pixels) <= 1000:
            raise ValueError(f"augment is 'flip', 'shift:' with a number of pixels, or both, not {words!r:.80}")
        return cls("flip" in known, int(pixels) if "shift" in known else 0)

    def check(self, inputs: Tensor | dict[str, Tensor]) -> None:
        """Refuse records that are no images, and moves out of the picture."""
        found = tuple(inputs.shape[1:]) if isinstance(inputs, Tensor) else list(inputs)
        if not isinstance(inputs, Tensor) or inputs.ndim != 4 or self.shift >= min(inputs.shape[2:]):
            raise ValueError(
                f"augment varies images (channels, height, width) of more pixels per side than it shifts by "
                f"({self.shift}), and the records have {found}: leave it out"
            )

    def drawn(self, seed: int, epoch: int, count: int, device: torch.device) -> "Drawn | None":
        """What happens to each record in an epoch; None where nothing does."""
        if not self.flip and not self.shift:
            return None
        rng = np.random.default_rng(stream(seed, VARIATIONS, epoch))
        flipped, moved = rng.random(count) < 0.5, rng.integers(-self.shift, self.shift, (count, 2), endpoint=True)
        return Drawn(
            self.shift, torch.from_numpy(flipped & self.flip).to(device), torch.from_numpy(moved).to(device)
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Drawn:
    """What happens to each record in one epoch."""

    most: int  # pixels
    flipped: Tensor  # (records,)
    moved: Tensor  # (records, 2): down and to the right

    def of(self, inputs: Tensor, rows: Tensor) -> Tensor:
        """The images in these rows, varied."""
        varied = torch.where(self.flipped[rows][:, None, None, None], inputs.flip(-1), inputs)
        if not self.most:
            return varied
        _, _, height, width = inputs.shape
        framed = F.pad(varied, (self.most,) * 4)
        first = self.most - self.moved[rows]  # of the rows and columns of the frame that are seen
        down = first[:, 0, None] + torch.arange(height, device=inputs.device)
        right = first[:, 1, None] + torch.arange(width, device=inputs.device)
        which = torch.arange(len(rows), device=inputs.device)[:, None, None]
        return framed[which, :, down[:, :, None], right[:, None, :]].permute(0, 3, 1, 2)
