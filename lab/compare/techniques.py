"""Seven techniques to forget without retraining, each a function that changes networks in place.

None promises anything that somebody could check. Settings are arguments, and their defaults usual values, not always
those of the papers; `GRIDS` has what is tried beside that. SCRUB is without its rewinding (SCRUB+R).

References
----------
Fine-tuning, random labels: A. Golatkar, A. Achille, S. Soatto, "Eternal sunshine of the spotless net", 2020;
L. Graves, V. Nagisetty, V. Ganesh, "Amnesiac machine learning", 2021.
NegGrad+, SCRUB: M. Kurmanji, P. Triantafillou, J. Hayes, E. Triantafillou, "Towards unbounded machine unlearning",
2023.
SalUn: C. Fan et al., "SalUn: empowering machine unlearning via gradient-based weight saliency", 2024.
MSG (masked small gradients), CT (convolution transpose): the two strongest of eighteen in X. F. Cadet, A. Borovykh,
M. Malekzadeh, S. Ahmadi-Abhari, H. Haddadi, "Deep unlearn: benchmarking machine unlearning", 2024, from NeurIPS's
challenge of 2023.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from lab.compare.descent import Descent, Technique, Weights, Work, cross_entropies
from maxrr.nets.inputs import Records

LABELS, DRAWN, SAMPLE = 1, 2, 3  # what numbers are drawn for


def loss_on(work: Work, side: Records, rows: Tensor, still: bool = False) -> Tensor:
    """Each network's cross-entropy on some records of a side."""
    inputs, labels = side.batch(rows)
    assert isinstance(inputs, Tensor)
    return cross_entropies(work.stack.scores(inputs, still=still), labels)


def fine_tune(work: Work, epochs: int = 5, lr: float = 1e-2) -> None:
    """Go on training on the records that stay."""
    Descent(work).down(lambda rows: loss_on(work, work.stay, rows), count=len(work.stay), epochs=epochs, lr=lr)


def neg_grad(work: Work, epochs: int = 5, lr: float = 1e-2, climb: float = 0.01) -> None:
    """NegGrad+: descend on the records that stay, and climb on those to forget, in the same steps."""

    def losses(rows: Tensor, leaving: Tensor | None = None) -> Tensor:
        kept = loss_on(work, work.stay, rows)
        return kept if leaving is None else (1.0 - climb) * kept - climb * loss_on(work, work.leave, leaving)

    Descent(work).down(losses, count=len(work.stay), beside=len(work.leave), epochs=epochs, lr=lr)


def random_labels(work: Work, epochs: int = 5, lr: float = 1e-2, reins: Weights | None = None) -> None:
    """Train on everything, where each record to forget has a label that is drawn anew in every epoch."""
    stay, descent, sources = len(work.stay), Descent(work, reins=reins), work.draws(LABELS)
    said = torch.cat([work.stay.labels, work.leave.labels]).expand(work.stack.count, -1).clone()
    inputs = torch.cat([side.inputs for side in (work.stay, work.leave)])  # type: ignore[misc]
    both = Records(inputs, said[0], work.stay.dtype)

    def losses(rows: Tensor) -> Tensor:
        images = both.batch(rows)[0]
        assert isinstance(images, Tensor)
        return cross_entropies(work.stack.scores(images), said.gather(1, rows))

    for epoch in range(epochs):
        said[:, stay:] = work.rows([source.integers(work.classes, size=len(work.leave)) for source in sources])
        descent.down(losses, count=said.shape[1], epochs=1, first=epoch, lr=lr)


def scrub(
    work: Work, epochs: int = 5, climbs: int = 3, lr: float = 1e-2, alpha: float = 0.5, heat: float = 4.0,
    climbing: float = 1.0, weight_decay: float = 5e-4,
) -> None:  # fmt: skip
    """SCRUB: for some epochs away from the teacher, the model before, on the records to forget; always near it on the
    others. Steps away are taken at `climbing` times the rate, on smaller batches.
    """
    before = {name: weights.detach().clone() for name, weights in work.stack.weights.items()}
    descent = Descent(work, weight_decay=weight_decay)

    def apart(side: Records, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs, labels = side.batch(rows)
        assert isinstance(inputs, Tensor)
        scores = work.stack.scores(inputs)
        with torch.no_grad():
            teacher = work.stack.scores(inputs, before, still=True)
        return divergence(teacher, scores, heat), scores, labels

    def near(rows: Tensor) -> Tensor:
        away, scores, labels = apart(work.stay, rows)
        return cross_entropies(scores, labels) + alpha * away

    def far(rows: Tensor) -> Tensor:
        return -apart(work.leave, rows)[0]

    for epoch in range(epochs):
        if epoch < climbs and len(work.leave):
            descent.down(far, count=len(work.leave), epochs=1, first=epoch, lr=climbing * lr, batch=work.batch // 4)
        descent.down(near, count=len(work.stay), epochs=1, first=epoch, lr=lr)


def divergence(teacher: Tensor, scores: Tensor, heat: float) -> Tensor:
    """KL of each network's softened answers from its teacher's."""
    said, now = (log_softmax(each / heat, -1) for each in (teacher, scores))
    return (said.exp() * (said - now)).sum(-1).mean(1) * heat**2


def salun(work: Work, epochs: int = 5, lr: float = 1e-2, share: float = 0.5) -> None:
    """SalUn: random labels, and only this share of the weights moves, on which the loss to forget depends most."""
    random_labels(work, epochs, lr, saliency(work, share) if len(work.leave) else None)


def saliency(work: Work, share: float) -> Weights:
    """1 for the weights with the largest gradient of the forgotten records' loss in a network, 0 for the others."""
    slopes = {name: slope.abs() for name, slope in work.stack.gradient(whole_loss(work, work.leave)).items()}
    flat = torch.cat([slope.flatten(1) for slope in slopes.values()], 1)
    still = round((1.0 - share) * flat.shape[1])
    least = flat.kthvalue(still, 1).values if still else -torch.ones_like(flat[:, 0])
    return {name: (slope > along(least, slope)).to(slope) for name, slope in slopes.items()}


def msg(work: Work, epochs: int = 5, lr: float = 1e-3, share: float = 0.3, rein: float = 0.1) -> None:
    """MSG: draw anew, in each convolution, the weights on which keeping and forgetting differ least; then fine-tune,
    the others of these kernels hardly.
    """
    size = min(len(work.leave), len(work.stay))
    sample = work.rows([draw.choice(len(work.stay), size, replace=False) for draw in work.draws(SAMPLE)])
    losses = torch.zeros(work.stack.count, device=work.stack.device)
    if size:
        losses = loss_on(work, work.stay, sample, still=True) - whole_loss(work, work.leave)
    slopes = work.stack.gradient(losses) if size else work.stack.weights
    reins = {name: torch.ones_like(weights) for name, weights in work.stack.weights.items()}
    for name in work.stack.kernels():
        sizes = slopes[name].detach().abs()
        least = sizes.flatten(1).kthvalue(max(1, round(share * sizes[0].numel())), 1).values
        drawn, weights = sizes <= along(least, sizes), work.stack.weights[name]
        reins[name][~drawn] = rein
        spread = (2.0 / weights[0, :, 0].numel()) ** 0.5  # Kaiming's, by what a kernel gives to
        fresh = [draw.normal(scale=spread, size=tuple(weights[0].shape)) for draw in work.draws(DRAWN)]
        with torch.no_grad():
            weights[drawn] = torch.from_numpy(np.stack(fresh)).to(weights)[drawn]
    Descent(work, weight_decay=5e-4, reins=reins).down(
        lambda rows: loss_on(work, work.stay, rows), count=len(work.stay), epochs=epochs, lr=lr, schedule="linear",
        warm_up=0.2,
    )  # fmt: skip


def transpose(work: Work, epochs: int = 3, lr: float = 1e-3) -> None:
    """CT: transpose every kernel, and fine-tune."""
    with torch.no_grad():
        for name in work.stack.kernels():
            work.stack.weights[name].copy_(work.stack.weights[name].transpose(-1, -2).clone())
    Descent(work, weight_decay=5e-4).down(
        lambda rows: loss_on(work, work.stay, rows), count=len(work.stay), epochs=epochs, lr=lr, schedule="cosine"
    )


def whole_loss(work: Work, side: Records) -> Tensor:
    """Each network's loss on all records of a side; a thousand at most, for memory."""
    rows = torch.arange(min(len(side), 1_000), device=work.stack.device)
    return loss_on(work, side, rows.expand(work.stack.count, -1), still=True)


def along(values: Tensor, like: Tensor) -> Tensor:
    """One value for each network, in the shape of its weights."""
    return values.view(-1, *(1 for _ in like.shape[1:]))


TECHNIQUES: Mapping[str, Any] = {
    "fine-tuning": fine_tune, "NegGrad+": neg_grad, "random labels": random_labels, "SCRUB": scrub, "SalUn": salun,
    "MSG": msg, "CT": transpose,
}  # fmt: skip

# What is tried of each, on validation records. The first are the function's own; those of the papers are among them,
# where these have any: SCRUB 5e-4, NegGrad+ a climb of 0.05 for 10 epochs, SalUn 0.013 for 10.
Settings = Mapping[str, Any]
GRIDS: Mapping[str, tuple[Settings, ...]] = {
    "fine-tuning": ({}, {"lr": 1e-3}, {"lr": 1e-4}, {"lr": 3e-2}, {"epochs": 10}, {"epochs": 10, "lr": 1e-3}),
    "NegGrad+": ({}, {"lr": 1e-3}, {"lr": 1e-4}, {"lr": 1e-3, "climb": 0.05}, {"epochs": 10, "climb": 0.05},
                 {"lr": 1e-3, "climb": 0.2}),
    "random labels": ({}, {"lr": 1e-3}, {"lr": 1e-4}, {"epochs": 2, "lr": 1e-3}, {"epochs": 10, "lr": 1.3e-2},
                      {"epochs": 2, "lr": 3e-4}),
    "SCRUB": ({}, {"lr": 5e-4}, {"lr": 1e-4}, {"lr": 2e-3}, {"lr": 5e-4, "climbing": 3.0}, {"lr": 5e-4, "climbs": 1}),
    "SalUn": ({}, {"lr": 1e-3}, {"lr": 1e-4}, {"epochs": 2, "lr": 1e-3}, {"epochs": 10, "lr": 1.3e-2},
              {"lr": 1e-3, "share": 0.1}),
    "MSG": ({}, {"lr": 3e-3}, {"lr": 1e-2}, {"lr": 3e-2}, {"lr": 1e-2, "share": 0.1}, {"lr": 3e-4}),
    "CT": ({}, {"lr": 3e-3}, {"lr": 1e-2}, {"lr": 3e-2}, {"lr": 1e-1}, {"epochs": 6, "lr": 1e-2}),
}  # fmt: skip


def technique_of(name: str, settings: Settings) -> Technique:
    """A technique with these settings."""
    return partial(TECHNIQUES[name], **settings)
