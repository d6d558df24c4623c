"""The text of an architecture: what computes something else has another one, what only looks otherwise has not."""

import copy
import importlib.util
import sys
from functools import partial

import pytest
import torch
from torch import nn

from maxrr.nets import LeNet5, split
from maxrr.nets.architecture import architecture
from tests.hidden_networks import Cache, Plain

SOURCE = """
import torch
from torch import nn

class Own(nn.Module):
    '''An own network.'''

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)  # weights

    def forward(self, x):
        '''What it computes.'''
        return torch.relu(self.first(x))
"""


def network_of(source, tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Own()


def pair(activation):
    return nn.Sequential(nn.Linear(4, 3), activation, nn.Linear(3, 2))


SETTINGS = {
    "another kind": (pair(nn.ReLU()), pair(nn.LeakyReLU())),
    "another slope": (pair(nn.LeakyReLU(0.1)), pair(nn.LeakyReLU(0.2))),
    "heads of attention": (nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 4)),
    "a function": (Plain(torch.relu), Plain(torch.tanh)),
    "what a function is given": (
        Plain(partial(nn.functional.leaky_relu, negative_slope=0.1)),
        Plain(partial(nn.functional.leaky_relu, negative_slope=0.2)),
    ),
    "a module once and twice": ((lambda one: nn.Sequential(one, one))(nn.Linear(3, 3)), pair(nn.ReLU())),
    "a stride": (nn.Conv2d(1, 2, 3), nn.Conv2d(1, 2, 3, stride=2)),
    "eps": (nn.BatchNorm1d(3), nn.BatchNorm1d(3, eps=1e-2)),
}


@pytest.mark.parametrize(("one", "other"), SETTINGS.values(), ids=SETTINGS)
def test_other_settings_are_other_texts(one, other):
    assert architecture(one) != architecture(other)


def test_weights_buffers_and_what_a_forward_pass_leaves_are_not_in_it():
    torch.manual_seed(0)
    one, other = Cache(), Cache()
    other(torch.randn(2, 8))
    later = copy.deepcopy(one), copy.deepcopy(other)
    for network in later:
        network(torch.randn(3, 8))
    assert architecture(one, later[0]) == architecture(other, later[1])
    assert architecture(LeNet5((1, 8, 8))) == architecture(LeNet5((1, 8, 8)))
    assert architecture(split(LeNet5((1, 8, 8)))[0]) != architecture(LeNet5((1, 8, 8)))


def test_a_hook_is_in_it():
    network = pair(nn.ReLU())
    before = architecture(network)
    network[1].register_forward_hook(lambda module, inputs, output: output * 2)
    assert architecture(network) != before


def test_the_source_of_own_classes_is_in_it_less_comments_and_docstrings(tmp_path):
    first = architecture(network_of(SOURCE, tmp_path, "own_first"))
    same = SOURCE.replace("  # weights", "").replace("An own network.", "Another word.").replace("'''", '"""')
    assert architecture(network_of(same, tmp_path, "own_same")) == first
    other = SOURCE.replace("torch.relu", "torch.tanh")
    assert architecture(network_of(other, tmp_path, "own_other")) != first


def test_words_in_attributes_cannot_be_read():
    network = Plain()
    network.names = ["Ada Lovelace"]
    text = architecture(network)
    assert "Ada" not in text
    network.names = ["Grace Hopper"]
    assert architecture(network) != text


def test_a_class_without_source_is_known_by_its_name():
    space: dict[str, type] = {}
    exec("from torch import nn\nclass Written(nn.Module):\n    def forward(self, x): return x", space)
    assert architecture(space["Written"]()).splitlines()[-1] == "class Written"
