"""Our CUDA kernels, run on the CPU by Triton's interpreter.

Triton decides when it is imported, so this is a program of its own: it prints the largest differences from PyTorch as
JSON, and `test_convolution.py` judges them.
"""

import copy
import json
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn


def reference(x, weight, bias, padding):
    """Each network's convolution by PyTorch, in float64, with its gradients for a loss of squares."""
    x, weight = (value.double().requires_grad_() for value in (x, weight))
    bias = None if bias is None else bias.double().requires_grad_()
    y = torch.stack([
        F.conv2d(x[at], weight[at], None if bias is None else bias[at], padding=padding) for at in range(len(x))
    ])  # fmt: skip
    y.square().sum().backward()
    return y.detach(), x.grad, weight.grad, None if bias is None else bias.grad


def difference(ours, theirs):
    """The largest, against the size of what is compared."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float((ours.double() - theirs).abs().max() / (1.0 + theirs.abs().max()))


def kernels():
    """The three products by themselves: channels, out, side, padding, height, width, bias.

    The first has more positions than all parts of a sum take at once, the second more than a tile.
    """
    from maxrr.nets import convolutions

    cases = [
        (1, 1, 3, 1, 18, 18, True), (1, 6, 5, 2, 9, 8, True), (3, 16, 5, 0, 6, 7, True), (2, 17, 3, 1, 6, 5, False),
        (2, 3, 3, 2, 4, 5, True), (1, 2, 5, 4, 3, 4, False), (3, 5, 1, 0, 4, 5, True), (1, 33, 3, 0, 5, 5, False),
    ]  # fmt: skip
    for channels, out, side, padding, height, width, biased in cases:
        torch.manual_seed(channels + 10 * out + side)
        x, weight = torch.randn(2, 2, channels, height, width), torch.randn(2, out, channels, side, side)
        bias = torch.randn(2, out) if biased else None
        y, to_x, to_weight, to_bias = reference(x, weight, bias, padding)
        slope = (2.0 * y).float()
        results = [
            convolutions.output(x, weight, bias, padding),
            convolutions.input_gradient(slope, weight, padding),
        ]
        results += convolutions.weight_gradient(x, slope, side, padding)
        expected = [y, to_x, to_weight, (2.0 * y).sum((1, 3, 4)) if to_bias is None else to_bias]
        again = convolutions.weight_gradient(x, slope, side, padding) if out == 1 else results[2:]
        yield {
            "case": f"{channels}x{height}x{width} to {out}, {side}x{side}, padding {padding}, bias {biased}",
            "difference": max(map(difference, results, expected)),
            "repeats": all(torch.equal(*pair) for pair in zip(results[2:], again, strict=True)),
        }


class Calls:
    """How often our kernels ran."""

    def __init__(self):
        from maxrr.nets import convolutions

        self.count, self.output = 0, convolutions.output
        convolutions.output = self

    def __call__(self, *arguments):
        self.count += 1
        return self.output(*arguments)


def stacks():
    """Networks under vmap, with our kernels and in a loop without them."""
    from torch.func import functional_call, stack_module_state, vmap

    from maxrr.nets.convolutions import ManyConvolutions

    calls = Calls()
    covered = {
        "layer": nn.Conv2d(2, 3, 3), "padding": nn.Conv2d(2, 3, 3, padding=1),
        "no bias": nn.Conv2d(2, 3, 3, bias=False), "circular": nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"),
        "two layers": nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 2, 3)),
    }  # fmt: skip
    others = {
        "stride": nn.Conv2d(2, 3, 3, stride=2), "dilation": nn.Conv2d(2, 3, 3, dilation=2),
        "groups": nn.Conv2d(2, 4, 3, groups=2), "words": nn.Conv2d(2, 3, 3, padding="same"),
        "wide padding": nn.Conv2d(2, 3, 3, padding=3), "oblong kernel": nn.Conv2d(2, 3, (3, 1)),
        "oblong padding": nn.Conv2d(2, 3, 3, padding=(0, 1)),
    }  # fmt: skip
    for name, layer in (covered | others).items():
        torch.manual_seed(0)
        template = nn.Sequential(layer)
        weights, state = stack_module_state([renewed(template) for _ in range(2)])
        x = torch.randn(2, 2, 2, 5, 6, requires_grad=True)
        before = calls.count
        with ManyConvolutions():
            y = vmap(functional_call, in_dims=(None, (0, 0), 0))(template, (weights, state), x)
        y.square().sum().backward()
        ours = [y.detach(), x.grad, *(value.grad for value in weights.values())]
        used = calls.count > before
        expected, slopes = [], {key: [] for key in weights}
        single = x.detach().clone().requires_grad_()
        for at in range(2):
            own = {key: value[at].detach().clone().requires_grad_() for key, value in weights.items()}
            result = functional_call(template, own, (single[at],))
            result.square().sum().backward()
            expected.append(result.detach())
            for key, value in own.items():
                slopes[key].append(value.grad)
        theirs = [torch.stack(expected), single.grad, *(torch.stack(values) for values in slopes.values())]
        largest = max(difference(one, other.double()) for one, other in zip(ours, theirs, strict=True))
        yield {"case": name, "difference": largest, "used": used, "expected": name in covered}


def renewed(network):
    """The same network with other weights."""
    network = copy.deepcopy(network)
    for layer in network.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return network


def shared():
    """One set of images for all networks, one set of weights for all, and networks along another axis."""
    from torch.func import vmap

    from maxrr.nets.convolutions import ManyConvolutions

    calls = Calls()
    torch.manual_seed(0)
    many, one = torch.randn(2, 2, 1, 6, 6), torch.randn(2, 1, 6, 6)
    weights, weight = torch.randn(2, 3, 1, 3, 3), torch.randn(3, 1, 3, 3)
    cases = {
        "one set of images": (one, weights, (None, 0)), "one set of weights": (many, weight, (0, None)),
        "another axis": (many.movedim(0, 2), weights, (2, 0)),
    }  # fmt: skip
    for name, (x, kernel, places) in cases.items():
        before = calls.count
        with ManyConvolutions():
            y = vmap(lambda x, kernel: torch.conv2d(x, kernel, None, [1, 1], [1, 1], [1, 1], 1), places)(x, kernel)
        images = one.expand(2, *one.shape) if places[0] is None else many
        kernels = weight.expand(2, *weight.shape) if places[1] is None else weights
        expected, *_ = reference(images, kernels, None, 1)
        yield {"case": name, "difference": difference(y, expected), "used": calls.count > before, "expected": True}


if __name__ == "__main__":
    assert os.environ.get("TRITON_INTERPRET") == "1"
    torch.backends.cudnn.allow_tf32 = False
    json.dump({part.__name__: list(part()) for part in (kernels, stacks, shared)}, sys.stdout)
