"""Networks: split into extractor and last layer, trained for one seed or many, and used to embed records."""

from maxrr.nets.embedding import embed
from maxrr.nets.inputs import tensors
from maxrr.nets.networks import MLP, LeNet5, NoNetwork, split
from maxrr.nets.public_weights import Resized
from maxrr.nets.recipe import Recipe, Run
from maxrr.nets.training import train, train_many

__all__ = ["MLP", "LeNet5", "NoNetwork", "Recipe", "Resized", "Run", "embed", "split", "tensors", "train", "train_many"]
