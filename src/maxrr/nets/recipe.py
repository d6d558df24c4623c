"""How a network is trained, and what came of it."""

import math
import operator
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maxrr.nets.seeding import stream

# Images that are varied a little in every epoch, by numbers that belong to the seed, the epoch and the record.


VARIATIONS = 3  # the stream below the seed


def variations_in(augment: tuple[str, ...]) -> tuple[bool, int]:
    """Whether images are turned left to right, and by how many pixels they are moved at most."""
    known = {word.partition(":")[0]: word.partition(":")[2] for word in augment}
    pixels = known.get("shift", "1")
    sound = not known.keys() - {"flip", "shift"} and not known.get("flip") and pixels.isdecimal()
    if len(known) != len(augment) or not sound or not 1 <= int(pixels) <= 1000:
        raise ValueError(f"augment is 'flip', 'shift:' with a number of pixels, or both, not {augment!r:.80}")
    return "flip" in known, int(pixels) if "shift" in known else 0


def check_images(augment: tuple[str, ...], inputs: Tensor | dict[str, Tensor]) -> None:
    """Refuse to vary records that are no images, and moves out of the picture."""
    _, shift = variations_in(augment)
    found = tuple(inputs.shape[1:]) if isinstance(inputs, Tensor) else list(inputs)
    if augment and not (isinstance(inputs, Tensor) and inputs.ndim == 4 and shift < min(inputs.shape[2:])):
        raise ValueError(
            f"augment varies images (channels, height, width) of more pixels per side than it shifts by ({shift}), and "
            f"the records have {found}: leave it out"
        )


@dataclass(frozen=True, eq=False)
class Variations:
    """What happens to each image in one epoch."""

    most: int  # pixels
    flipped: Tensor  # (records,)
    moved: Tensor  # (records, 2): down and to the right

    @classmethod
    def drawn(cls, augment: tuple[str, ...], seed: int, epoch: int, count: int, device: torch.device) -> "Variations":
        """Draw the variations of so many records."""
        flip, shift = variations_in(augment)
        rng = np.random.default_rng(stream(seed, VARIATIONS, epoch))
        flipped, moved = rng.random(count) < 0.5, rng.integers(-shift, shift, (count, 2), endpoint=True)
        return cls(shift, torch.from_numpy(flipped & flip).to(device), torch.from_numpy(moved).to(device))

    def of(self, inputs: Tensor, rows: Tensor) -> Tensor:
        """Vary the images in these rows."""
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


WORDS = {
    "optimiser": ("adam", "adamw", "sgd"),
    "schedule": ("constant", "cosine", "linear"),
    "batch_norm": ("learned", "kept"),
    "precision": ("float32", "bfloat16"),
}


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: steps of an optimiser on the cross-entropy, and what else is usual.

    The defaults give the paper's accuracy and number of influential records for LeNet-5 on Fashion-MNIST.

    Attributes
    ----------
    epochs
        How often training goes through all records.
    batch_size
        How many records each step sees.
    lr
        The learning rate. Lower it when training diverges.
    optimiser
        "adam", "adamw" or "sgd".
    momentum
        How much of the step before goes on into the next, with "sgd".
    weight_decay
        How strongly weights are drawn to zero: by themselves with "adamw", through the gradient otherwise.
    schedule
        How the learning rate changes from the first step to the last: "constant", or down to zero as "cosine" or
        "linear".
    label_smoothing
        The share of each label that is spread over all classes: from 0 up to, but not including, 1.
    augment
        How images are varied in every epoch: "flip" (left and right, every second image on average) and "shift:2"
        (by up to that many pixels to each side, filled up with zeros), one of them or both. What is drawn for a record
        depends on the seed, the epoch and its place in the order of ids, and on nothing else.
    body_lr
        The learning rate of everything but the last linear layer, where it is another: for fine-tuning, which starts
        from weights that were given, a smaller one.
    warm_up
        During which share of the steps the rate rises to its full height, from 0 up to, but not including, 1. With
        "cosine" that is one cycle.
    frozen
        Names of layers, or of parts with all layers in them, whose weights stay as they are, statistics among them.
    batch_norm
        "learned": batch normalisation uses the statistics of each batch, and learns those of the core. "kept": it uses
        those that the network starts with, which stay as they are.
    precision
        "float32", or "bfloat16" for products in training, which is faster on a GPU. Weights and features are in
        float32 all the same.

    Examples
    --------
    >>> Recipe(epochs=30, optimiser="adamw", weight_decay=0.01, schedule="cosine").facts
    {'epochs': 30, 'batch_size': 64, 'lr': 0.001, 'optimiser': 'adamw', 'weight_decay': 0.01, 'schedule': 'cosine'}
    """

    epochs: int = 18
    batch_size: int = 64
    lr: float = 1e-3
    optimiser: str = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"
    label_smoothing: float = 0.0
    augment: tuple[str, ...] = ()
    body_lr: float | None = None
    warm_up: float = 0.0
    frozen: tuple[str, ...] = ()
    batch_norm: str = "learned"
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))  # NumPy's numbers become Python's
        for name in ("lr", "momentum", "weight_decay", "label_smoothing", "warm_up"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.body_lr is not None:
            object.__setattr__(self, "body_lr", float(self.body_lr))
        for name in ("augment", "frozen"):
            words: str | tuple[str, ...] = getattr(self, name)
            object.__setattr__(self, name, (words,) if isinstance(words, str) else tuple(words))
        rates = (self.lr,) if self.body_lr is None else (self.lr, self.body_lr)
        if self.epochs < 1 or self.batch_size < 1 or not all(rate > 0.0 for rate in rates):
            raise ValueError(
                f"training takes one epoch or more, batches of one record or more and positive learning rates, "
                f"not epochs={self.epochs}, batch_size={self.batch_size}, lr={self.lr}, body_lr={self.body_lr}"
            )
        for name, known in WORDS.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {' or '.join(map(repr, known))}, not {getattr(self, name)!r}")
        shares = {name: getattr(self, name) for name in ("momentum", "label_smoothing", "warm_up")}
        if not (self.weight_decay >= 0.0 and all(0.0 <= share < 1.0 for share in shares.values())):
            raise ValueError(
                f"weight_decay is 0 or more, {', '.join(shares)} are from 0 up to, but not including, 1, not "
                f"weight_decay={self.weight_decay}, {', '.join(f'{name}={share}' for name, share in shares.items())}"
            )
        variations_in(self.augment)  # says what is wrong with them

    @property
    def facts(self) -> dict[str, Any]:
        """The recipe as JSON: the first three fields, and those others that are not the defaults."""
        kept = {name: value for name, value in vars(self).items() if value != USUAL.get(name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


USUAL = {part.name: part.default for part in fields(Recipe)[3:]}


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The learning rate of a step, numbered from 0, of all steps.

    >>> [rate_at(Recipe(lr=1.0, schedule="linear"), step, 4) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    >>> [rate_at(Recipe(lr=1.0, schedule="linear", warm_up=0.5), step, 4) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    rising = round(recipe.warm_up * steps)
    if step < rising:
        return recipe.lr * (step + 1) / rising
    through = (step - rising) / (steps - rising)
    if recipe.schedule == "cosine":
        return recipe.lr * 0.5 * (1.0 + math.cos(math.pi * through))
    return recipe.lr * (1.0 - through) if recipe.schedule == "linear" else recipe.lr


def batch_sizes(recipe: Recipe, count: int) -> list[int]:
    """The sizes of an epoch's batches, which sum to `count`.

    The last one may be smaller. A single record left over joins the batch before it, because batch normalisation
    cannot be trained on one record.

    >>> batch_sizes(Recipe(batch_size=4), 10), batch_sizes(Recipe(batch_size=4), 9)
    ([4, 4, 2], [4, 5])
    """
    full, rest = divmod(count, recipe.batch_size)
    sizes = [recipe.batch_size] * full + [rest] * (rest > 0)
    return [*sizes[:-2], sizes[-2] + 1] if rest == 1 and full else sizes


@dataclass(frozen=True)
class Environment:
    """What the bytes of a trained network depend on besides the seed.

    Attributes
    ----------
    device
        'cpu', or the name of the GPU, with the versions of CUDA, of cuDNN and, where it is installed, of Triton.
    threads
        How many threads trained each network.
    torch_version, numpy_version
        Versions of PyTorch and NumPy.
    machine
        The kind of processor, its model, and what PyTorch uses of it, such as 'x86_64 AMD EPYC 7763 AVX2'.
    """

    device: str
    threads: int
    torch_version: str
    numpy_version: str
    machine: str

    @classmethod
    def here(cls, device: torch.device, threads: int) -> "Environment":
        """The environment of this process.

        Parameters
        ----------
        device
            The device that networks are trained on.
        threads
            How many threads train each network.

        Returns
        -------
        Environment
            With the versions that are installed here.
        """
        name = graphics_processor(device) if device.type == "cuda" else device.type
        return cls(name, threads, str(torch.__version__), np.__version__, processor())


@cache
def graphics_processor(device: torch.device) -> str:
    """Name a GPU, and the versions of what computes on it."""
    try:
        triton = f", Triton {version('triton')}"
    except PackageNotFoundError:
        triton = ""
    name, cudnn = torch.cuda.get_device_name(device), torch.backends.cudnn.version()
    return f"{name}, CUDA {torch.version.cuda}, cuDNN {cudnn}{triton}"


@cache
def processor() -> str:
    """Name the processor: others of the same kind may round differently."""
    said = Path("/proc/cpuinfo")
    lines = said.read_text().splitlines() if said.exists() else [f"model name: {platform.processor()}"]
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part"))), "")
    return f"{platform.machine()} {model} {torch.backends.cpu.get_cpu_capability()}"


@dataclass(frozen=True)
class Run:
    """A trained network, and how its training ended.

    Attributes
    ----------
    seed
        What the first weights and the shuffles were drawn from.
    network
        The trained network, on the CPU and in evaluation mode.
    loss
        The mean cross-entropy over the last epoch, measured while it trained; not a number where a function of the
        caller's own trained it.
    accuracy
        The accuracy on the training records over the last epoch, measured while it trained; likewise.
    environment
        Where it was trained.
    """

    seed: int
    network: nn.Module
    loss: float
    accuracy: float
    environment: Environment


# Adam on the CPU, by the very operation of PyTorch that its own classes call, but without these.
#
# Making one of them imports PyTorch's compiler, which nobody here uses: it takes longer than all else that a process
# does before its first step, in every worker and every replay.


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # what torch.optim.Adam has


class Optimiser(Protocol):
    """The part of an optimiser's interface that training uses."""

    @property
    def param_groups(self) -> list[dict[str, Any]]: ...
    def step(self) -> Any: ...


class FusedAdam:
    """The steps of `torch.optim.Adam`, or `AdamW`, with `fused=True`, of one tensor of weights."""

    def __init__(self, weights: Tensor, lr: float, weight_decay: float, *, decoupled: bool) -> None:
        self.weights, self.weight_decay = weights, weight_decay
        self.operation = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = torch.zeros(())
        self.param_groups: list[dict[str, Any]] = [{"lr": lr}]

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights against their gradient."""
        assert self.weights.grad is not None
        self.steps += 1
        self.operation(
            [self.weights], [self.weights.grad], [self.mean], [self.square], [], [self.steps],
            lr=self.param_groups[0]["lr"], beta1=BETA1, beta2=BETA2, weight_decay=self.weight_decay, eps=EPSILON,
            amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
        )  # fmt: skip


def optimiser_of(recipe: Recipe, weights: Tensor) -> Optimiser:
    """Make the optimiser that the recipe names, for one tensor of weights."""
    if recipe.optimiser != "sgd" and weights.device.type == "cpu":
        return FusedAdam(weights, recipe.lr, recipe.weight_decay, decoupled=recipe.optimiser == "adamw")
    return torch_optimiser(recipe, [weights])


def torch_optimiser(recipe: Recipe, weights: Sequence[Tensor]) -> torch.optim.Optimizer:
    """PyTorch's own optimiser of tensors on one device."""
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(weights, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    kind = torch.optim.AdamW if recipe.optimiser == "adamw" else torch.optim.Adam
    on_cuda = weights[0].device.type == "cuda"
    return kind(weights, lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True, capturable=on_cuda)
