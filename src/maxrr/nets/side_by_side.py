"""Several extractors as one: what each gives for a record stands side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SideBySide(nn.Module):
    """Extractors that see the same records; a record's features are those of the first, then of the second, and so on.

    Parameters
    ----------
    parts : sequence of torch.nn.Module
        The extractors. Each gives one vector per record.

    Examples
    --------
    >>> both = SideBySide([nn.Linear(4, 2), nn.Linear(4, 3)])
    >>> both(torch.zeros(7, 4)).shape
    torch.Size([7, 5])
    """

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """The features of records, (records, d)."""
        return torch.cat([part(*inputs, **named).flatten(1) for part in self.parts], dim=1)


def joined(parts: Sequence[nn.Module]) -> nn.Module:
    """One extractor of several; a single one as it is."""
    return parts[0] if len(parts) == 1 else SideBySide(parts).eval()


def parts_of(extractor: nn.Module) -> list[nn.Module]:
    """The extractors that `joined` was given."""
    return list(extractor.parts) if isinstance(extractor, SideBySide) else [extractor]
