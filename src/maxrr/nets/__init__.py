"""Networks: split into extractor and last layer, trained for one seed or many, and used to embed records."""

from maxrr.nets.embedding import embed
from maxrr.nets.initial_weights import DrawnAnewWarning
from maxrr.nets.inputs import tensors
from maxrr.nets.networks import MLP, LeNet5, NoNetwork, split
from maxrr.nets.recipe import Environment, Recipe, Run
from maxrr.nets.seeding import Network
from maxrr.nets.training import train, train_many
from maxrr.nets.training_function import NotRepeatableWarning, TrainingFunction

__all__ = [
    "MLP",
    "DrawnAnewWarning",
    "Environment",
    "LeNet5",
    "Network",
    "NoNetwork",
    "NotRepeatableWarning",
    "Recipe",
    "Run",
    "TrainingFunction",
    "embed",
    "split",
    "tensors",
    "train",
    "train_many",
]
