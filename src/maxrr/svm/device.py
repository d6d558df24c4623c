"""A device beside the processor: which one was asked for, and how much of its memory may be used."""

from dataclasses import dataclass

SHARE = 0.8  # of the device's memory that is free


@dataclass(frozen=True)
class Device:
    """Where products are done with samples that are in main memory."""

    name: str
    budget: int | None = None  # bytes; None stands for a share of what is free

    def room(self) -> int:
        """How many bytes may be used there now."""
        if self.budget is not None:
            return self.budget
        import torch

        free, _ = torch.cuda.mem_get_info(self.name)
        unused = torch.cuda.memory_reserved(self.name) - torch.cuda.memory_allocated(self.name)
        return int(SHARE * (free + unused))


def asked_for(device: object) -> Device | None:
    """The device that a caller names; None for the processor."""
    if device is None or str(device) == "cpu":
        return None
    import torch

    try:
        kind = torch.device(str(device)).type
    except RuntimeError:
        kind = ""
    if kind != "cuda":
        raise ValueError(f"device must be None, 'cpu' or 'cuda', not {str(device)!r}")
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={str(device)!r} was asked for, but PyTorch finds no CUDA device here: leave `device` out, which "
            "gives the same bytes, or install a PyTorch built for CUDA"
        )
    return Device(str(device))
