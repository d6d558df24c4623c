"""Lets PyTorch's `conv2d` use our kernels while many networks step together.

Inside `ManyConvolutions()` any network's convolutions, whether layers or plain function calls, go through here; those
that the kernels do not cover (strides, dilation, groups) go on to PyTorch as before.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from maxrr.nets import convolution_kernels

WIDEST = 64  # channels; with more, a grouped convolution has enough to do, and a tile of ours would be too large


class ManyConvolutions(TorchFunctionMode):
    """While this is entered, stacked convolutions are done by our kernels."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is F.conv2d or function is torch.conv2d:
            x, weight, bias, padding = covered(*args, **(kwargs or {}))
            if padding is not None:
                return OneOfMany.apply(x, weight, bias, padding)
        return function(*args, **(kwargs or {}))


def covered(
    input: Tensor, weight: Tensor, bias: Tensor | None = None,
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> tuple[Tensor, Tensor, Tensor | None, int | None]:  # fmt: skip
    """The arguments of a convolution, with its padding as one number, or None where the kernels cannot do it."""
    one = (1, (1, 1), [1, 1])
    if isinstance(padding, (tuple, list)) and len(set(padding)) == 1:
        padding = padding[0]
    fits = stride in one and dilation in one and groups == 1 and isinstance(padding, int)
    fits = (
        fits and weight.shape[2] == weight.shape[3] > padding and input.dim() == 4 and max(weight.shape[:2]) <= WIDEST
    )
    return input, weight, bias, padding if fits else None


class OneOfMany(torch.autograd.Function):
    """What one network sees of a convolution that is done for all of them."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
        return F.conv2d(x, weight, bias, padding=padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        x, weight, bias = (
            value if value is None or place == 0
            else value.expand(info.batch_size, *value.shape) if place is None
            else value.movedim(place, 0)
            for value, place in zip(inputs[:3], in_dims[:3], strict=True)
        )  # fmt: skip
        return Convolution.apply(
            *(value if value is None else value.contiguous() for value in (x, weight, bias)), inputs[3]
        ), 0


class Convolution(torch.autograd.Function):
    """The kernels, with the gradients that training needs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.padding, ctx.biased = padding, bias is not None
        return convolution_kernels.output(x, weight, bias, padding)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_x = convolution_kernels.input_gradient(gradient, weight, ctx.padding) if ctx.needs_input_grad[0] else None
        to_weight = to_bias = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            to_weight, to_bias = convolution_kernels.weight_gradient(x, gradient, weight.shape[3], ctx.padding)
        return to_x, to_weight, to_bias if ctx.biased else None, None
