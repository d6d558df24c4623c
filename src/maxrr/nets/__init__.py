"""Networks: split into extractor and last layer, trained for one seed or many, and used to embed records."""

from maxrr.nets.embedding import embed
from maxrr.nets.initial_weights import DrawnAnewWarning
from maxrr.nets.lenet import LeNet5
from maxrr.nets.mlp import MLP
from maxrr.nets.no_network import NoNetwork
from maxrr.nets.own_training import NotRepeatableWarning, TrainingFunction
from maxrr.nets.recipe import Environment, Recipe, Run
from maxrr.nets.records import tensors
from maxrr.nets.seeding import Network
from maxrr.nets.splitting import split
from maxrr.nets.training import train, train_many

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
