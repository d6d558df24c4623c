"""Networks: LeNet-5 and others, cut into extractor and head, trained for one seed or a hundred, embedded."""

from maxrr.nets.embedding import embed
from maxrr.nets.lenet import LeNet5
from maxrr.nets.mlp import MLP
from maxrr.nets.recipe import Environment, Recipe, Run
from maxrr.nets.seeding import Network
from maxrr.nets.splitting import split
from maxrr.nets.training import train, train_many

__all__ = ["MLP", "Environment", "LeNet5", "Network", "Recipe", "Run", "embed", "split", "train", "train_many"]
