"""The training loop of `own_training.ipynb`. It is in a module of its own because a replay imports it."""

import torch
from torch.nn.functional import cross_entropy

from maxrr.nets import tensors


def train(network, dataset, seed, device):
    """AdamW with a cosine schedule, label smoothing, and images that are moved by a pixel."""
    inputs, labels = tensors(dataset, device)
    network.to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=8)
    for _ in range(8):
        for rows in torch.randperm(len(labels)).split(32):
            shift = torch.randint(-1, 2, (2,)).tolist()
            moved = inputs[rows].roll(shift, dims=(2, 3))
            optimiser.zero_grad()
            cross_entropy(network(moved), labels[rows], label_smoothing=0.05).backward()
            optimiser.step()
        schedule.step()
    return network
