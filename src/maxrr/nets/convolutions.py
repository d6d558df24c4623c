"""Convolutions of many networks in one launch, as implicit matrix products.

Stacked networks have their own weights *and* their own batches, which libraries only offer as grouped convolutions; for
the few channels of small networks these leave most of a GPU idle. Here each program multiplies one network's weights
(out channels × taps) with a tile of windows (taps × positions) that it gathers as it goes, so nothing is unfolded in
memory. A tap is an (input channel, row, column) of the kernel.

Three products make a training step: the output, the gradient of the weights, and that of the input, which is a
convolution of the output's gradient with the kernel turned around. The weights' gradient is summed over positions in
`SPLITS` fixed parts and these in a fixed order, so the same input gives the same bytes.

Inside `ManyConvolutions()` any network's convolutions, whether layers or plain function calls, go through the kernels;
those that they do not cover (strides, dilation, groups) go on to PyTorch as before.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor
from torch.overrides import TorchFunctionMode

# Tile sizes and warps, measured on an H200 for LeNet-5.
OUTPUT_TILE = {"TAP_TILE": 16, "POSITION_TILE": 128, "num_warps": 2}
GRADIENT_TILE = {"TAP_TILE": 32, "POSITION_TILE": 32, "num_warps": 1}
SPLITS = 16  # partial sums of the weights' gradient for each network


@triton.jit
def _windows(
    x, position, tap, count,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    OUT_HEIGHT: tl.constexpr, OUT_WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PADDING: tl.constexpr,
):  # fmt: skip
    """Input values under taps (down) of the windows at positions (across); zero outside the image.

    An address is the corner of a window plus the place of a tap in it, so most of the arithmetic is on vectors.
    """
    image, within = position // (OUT_HEIGHT * OUT_WIDTH), position % (OUT_HEIGHT * OUT_WIDTH)
    top, left = within // OUT_WIDTH - PADDING, within % OUT_WIDTH - PADDING
    row, column = (tap // COLUMNS) % ROWS, tap % COLUMNS
    corner = image * (CHANNELS * HEIGHT * WIDTH) + top * WIDTH + left
    place = tap // (ROWS * COLUMNS) * (HEIGHT * WIDTH) + row * WIDTH + column
    inside = (tap < CHANNELS * ROWS * COLUMNS)[:, None] & (position < count)[None, :]
    if PADDING > 0:  # as unsigned numbers, negative ones are too large as well
        inside = inside & ((top[None, :] + row[:, None]).to(tl.uint32, bitcast=True) < HEIGHT)
        inside = inside & ((left[None, :] + column[:, None]).to(tl.uint32, bitcast=True) < WIDTH)
    return tl.load(x + (corner[None, :] + place[:, None]), mask=inside, other=0.0)


@triton.jit
def _output_kernel(
    x, weight, bias, y, images,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    OUT: tl.constexpr, OUT_HEIGHT: tl.constexpr, OUT_WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PADDING: tl.constexpr,
    BIASED: tl.constexpr, PRECISION: tl.constexpr,
    OUT_TILE: tl.constexpr, TAP_TILE: tl.constexpr, POSITION_TILE: tl.constexpr,
):  # fmt: skip
    network = tl.program_id(1).to(tl.int64)
    taps = CHANNELS * ROWS * COLUMNS
    count = images * OUT_HEIGHT * OUT_WIDTH
    x += network * images * CHANNELS * HEIGHT * WIDTH
    y += network * images * OUT * OUT_HEIGHT * OUT_WIDTH
    weight += network * OUT * taps
    position = tl.program_id(0) * POSITION_TILE + tl.arange(0, POSITION_TILE)
    out = tl.arange(0, OUT_TILE)
    total = tl.zeros((OUT_TILE, POSITION_TILE), dtype=tl.float32)
    for first in range(0, taps, TAP_TILE):
        tap = first + tl.arange(0, TAP_TILE)
        known = (out < OUT)[:, None] & (tap < taps)[None, :]
        kernel = tl.load(weight + out[:, None] * taps + tap[None, :], mask=known, other=0.0)
        window = _windows(
            x, position, tap, count, CHANNELS, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH, ROWS, COLUMNS, PADDING
        )
        total = tl.dot(kernel, window, total, input_precision=PRECISION)
    if BIASED:
        total += tl.load(bias + network * OUT + out, mask=out < OUT, other=0.0)[:, None]
    image = position // (OUT_HEIGHT * OUT_WIDTH)
    within = position % (OUT_HEIGHT * OUT_WIDTH)
    at = image[None, :] * (OUT * OUT_HEIGHT * OUT_WIDTH) + out[:, None] * (OUT_HEIGHT * OUT_WIDTH) + within[None, :]
    tl.store(y + at, total, mask=(out < OUT)[:, None] & (position < count)[None, :])


@triton.jit
def _weight_gradient_kernel(
    x, gradient, to_weight, to_bias, images,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    OUT: tl.constexpr, OUT_HEIGHT: tl.constexpr, OUT_WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PADDING: tl.constexpr,
    PRECISION: tl.constexpr, PARTS: tl.constexpr,
    OUT_TILE: tl.constexpr, TAP_TILE: tl.constexpr, POSITION_TILE: tl.constexpr,
):  # fmt: skip
    network, part = tl.program_id(2).to(tl.int64), tl.program_id(1)
    taps = CHANNELS * ROWS * COLUMNS
    count = images * OUT_HEIGHT * OUT_WIDTH
    x += network * images * CHANNELS * HEIGHT * WIDTH
    gradient += network * images * OUT * OUT_HEIGHT * OUT_WIDTH
    tap = tl.program_id(0) * TAP_TILE + tl.arange(0, TAP_TILE)
    out = tl.arange(0, OUT_TILE)
    total = tl.zeros((OUT_TILE, TAP_TILE), dtype=tl.float32)
    sums = tl.zeros((OUT_TILE,), dtype=tl.float32)
    for first in range(part * POSITION_TILE, count, PARTS * POSITION_TILE):
        position = first + tl.arange(0, POSITION_TILE)
        image = position // (OUT_HEIGHT * OUT_WIDTH)
        within = position % (OUT_HEIGHT * OUT_WIDTH)
        at = image[None, :] * (OUT * OUT_HEIGHT * OUT_WIDTH) + out[:, None] * (OUT_HEIGHT * OUT_WIDTH) + within[None, :]
        slope = tl.load(gradient + at, mask=(out < OUT)[:, None] & (position < count)[None, :], other=0.0)
        window = _windows(
            x, position, tap, count, CHANNELS, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH, ROWS, COLUMNS, PADDING
        )
        total = tl.dot(slope, tl.trans(window), total, input_precision=PRECISION)
        sums += tl.sum(slope, axis=1)
    known = (out < OUT)[:, None] & (tap < taps)[None, :]
    base = (network * PARTS + part) * OUT
    tl.store(to_weight + base * taps + out[:, None] * taps + tap[None, :], total, mask=known)
    if tl.program_id(0) == 0:
        tl.store(to_bias + base + out, sums, mask=out < OUT)


def output(x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
    """Convolutions of x (networks, images, channels, height, width), each network with its own weight
    (networks, out, channels, rows, columns) and bias (networks, out).
    """
    networks, images, channels, height, width = x.shape
    out, rows, columns = weight.shape[1], weight.shape[3], weight.shape[4]
    out_height, out_width = height + 2 * padding - rows + 1, width + 2 * padding - columns + 1
    y = x.new_empty(networks, images, out, out_height, out_width)
    grid = (triton.cdiv(images * out_height * out_width, OUTPUT_TILE["POSITION_TILE"]), networks)
    _output_kernel[grid](
        x, weight, bias if bias is not None else weight, y, images,
        channels, height, width, out, out_height, out_width, rows, columns, padding, bias is not None, precision(),
        out_tile(out), **OUTPUT_TILE,
    )  # fmt: skip
    return y


def weight_gradient(x: Tensor, gradient: Tensor, side: int, padding: int) -> tuple[Tensor, Tensor]:
    """Gradients of the weight (kernels of side × side) and the bias, from that of the output."""
    networks, images, channels, height, width = x.shape
    out, out_height, out_width = gradient.shape[2:]
    to_weight = x.new_empty(networks, SPLITS, out, channels, side, side)
    to_bias = x.new_empty(networks, SPLITS, out)
    grid = (triton.cdiv(channels * side * side, GRADIENT_TILE["TAP_TILE"]), SPLITS, networks)
    _weight_gradient_kernel[grid](
        x, gradient, to_weight, to_bias, images,
        channels, height, width, out, out_height, out_width, side, side, padding, precision(), SPLITS,
        out_tile(out), **GRADIENT_TILE,
    )  # fmt: skip
    return to_weight.sum(1), to_bias.sum(1)


def input_gradient(gradient: Tensor, weight: Tensor, padding: int) -> Tensor:
    """Gradient of the input: the output's gradient, convolved with the kernel turned around."""
    turned = weight.flip((3, 4)).transpose(1, 2).contiguous()
    return output(gradient, turned, None, weight.shape[3] - 1 - padding)


def out_tile(out: int) -> int:
    """Return the size of a tile that holds all output channels: a power of two from 16 on."""
    return max(16, 1 << (out - 1).bit_length())


def precision() -> str:
    """Return the precision of PyTorch's own convolutions: TF32 where the user allows it."""
    return "tf32" if torch.backends.cudnn.allow_tf32 else "ieee"


WIDEST = 64  # channels; with more, a grouped convolution has enough to do, and a tile of ours would be too large


class ManyConvolutions(TorchFunctionMode):
    """A context in which our kernels compute the convolutions of stacked networks."""

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
    """Return the arguments of a convolution, with its padding as one number; None for one that the kernels cannot
    compute.
    """
    one = (1, (1, 1), [1, 1])
    if isinstance(padding, (tuple, list)) and len(set(padding)) == 1:
        padding = padding[0]
    fits = stride in one and dilation in one and groups == 1 and isinstance(padding, int)
    fits = (
        fits and weight.shape[2] == weight.shape[3] > padding and input.dim() == 4 and max(weight.shape[:2]) <= WIDEST
    )
    return input, weight, bias, padding if fits else None


class OneOfMany(torch.autograd.Function):
    """A convolution as one network sees it, computed for all networks at once."""

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
    """The kernels with their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.padding, ctx.biased = padding, bias is not None
        return output(x, weight, bias, padding)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_x = input_gradient(gradient, weight, ctx.padding) if ctx.needs_input_grad[0] else None
        to_weight = to_bias = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            to_weight, to_bias = weight_gradient(x, gradient, weight.shape[3], ctx.padding)
        return to_x, to_weight, to_bias if ctx.biased else None, None
