"""Networks by name: which function makes one, with which arguments. A file can so name its network without pickle."""

import importlib
import inspect
import math
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from maxrr.errors import DataError
from maxrr.nets.networks import MLP, LeNet5, NoNetwork
from maxrr.nets.public_weights import GivenStart
from maxrr.nets.seeding import WEIGHTS, Network, drawing
from maxrr.parallel.processes import can_be_sent

OUR_OWN = (LeNet5, MLP, NoNetwork)


@dataclass(frozen=True)
class NamedNetwork:
    """A function that makes a network, known by where it is imported from.

    Parameters
    ----------
    maker : str
        Where the function is imported from, as in `package.module:function`.
    arguments : tuple
        What the function is called with: numbers, strings, and tuples or dictionaries of them.
    """

    maker: str
    arguments: tuple[Any, ...] = ()

    @classmethod
    def for_records(
        cls, maker: str, shape: tuple[int, ...] | dict[str, tuple[int, ...]], classes: int
    ) -> "NamedNetwork":
        """Name a network for such records. A maker that takes arguments gets their shape and the number of classes.

        Of several inputs it gets the shape of each, by name.
        """
        thing = find_maker(maker)
        if thing is MLP and isinstance(shape, tuple):
            return cls(maker, (math.prod(shape), classes))
        kinds = {parameter.kind for parameter in inspect.signature(thing).parameters.values()}
        named_only = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
        return cls(maker, (shape, classes) if kinds - named_only else ())

    @property
    def our_own(self) -> bool:
        """Whether this library defines it; anything else is code of others."""
        module, _, name = self.maker.partition(":")
        return any(name == kind.__name__ and module in ("maxrr.nets", kind.__module__) for kind in OUR_OWN)

    def __call__(self) -> nn.Module:
        network = find_maker(self.maker)(*map(as_tuple, self.arguments))
        if not isinstance(network, nn.Module):
            raise ValueError(f"{self.maker} should make a torch.nn.Module, not a {type(network).__name__}")
        return network


def name_of(network: Network) -> NamedNetwork | None:
    """Return the importable function that makes this network; None if there is none, as for a network of a script."""
    if isinstance(network, GivenStart):  # a module has its weights in itself, and no name gives them back
        return None if isinstance(network.network, nn.Module) else name_of(network.network)
    if isinstance(network, NamedNetwork):
        return network
    if isinstance(network, nn.Module):
        if type(network) not in OUR_OWN:
            return None
        named = NamedNetwork(f"maxrr.nets:{type(network).__name__}", tuple(vars(network)["arguments"]))
        with drawing(0, WEIGHTS):  # leaves the numbers that others draw as they are
            return named if describe(named()) == describe(network) else None
    maker = imported_from(network)
    return None if maker is None else NamedNetwork(maker)


def imported_from(function: Any) -> str | None:
    """Return where a fresh process finds a function, as in `package.module:function`; None where it cannot."""
    name = maker_of(function)
    try:
        return name if find_maker(name) is function and not name.startswith("__main__") else None
    except ValueError:
        return None


def suited(network: Network, shape: tuple[int, ...] | dict[str, tuple[int, ...]], classes: int) -> Network:
    """Give a function that makes networks the arguments that suit the records; return any other network as it is."""
    if not needs_arguments(network):
        return network
    if name_of(network) is None:
        raise DataError(
            f"{maker_of(network)} makes a network for a shape and a number of classes, and is known by its name in "
            "files: put it into a module, such as my_network.py, and import it from there"
        )
    return NamedNetwork.for_records(maker_of(network), shape, classes)


def as_recorded(network: Network | None, named: NamedNetwork | None) -> Network | None:
    """Give a function the arguments that a file has recorded for it; return any other network as it is."""
    if network is None or named is None or isinstance(network, nn.Module):
        return network
    maker = network.maker if isinstance(network, NamedNetwork) else maker_of(network)
    function = loaded(maker) if isinstance(network, NamedNetwork) else network
    same = maker == named.maker or (function is not None and function is loaded(named.maker))
    return named if same else network


def loaded(maker: str) -> Any:
    """Return what a name stands for if its module is imported already; None otherwise. No code is run."""
    module, _, name = maker.partition(":")
    return getattr(sys.modules.get(module), name, None)


def needs_arguments(network: Network) -> bool:
    """Whether a function needs arguments to make a network."""
    if isinstance(network, nn.Module | NamedNetwork):
        return False
    by_place = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(network).parameters.values()
    return any(each.kind in by_place and each.default is each.empty for each in parameters)


def maker_of(network: Network) -> str:
    """Return where a function is defined, as `NamedNetwork` writes it."""
    return f"{getattr(network, '__module__', '')}:{getattr(network, '__qualname__', '')}"


def with_outputs(network: Network, classes: int) -> Network:
    """Give a network so many outputs, if it is one of this library or starts from given weights."""
    if isinstance(network, GivenStart):
        return replace(network, outputs=classes)
    named = name_of(network)
    if named is None or not named.our_own or len(named.arguments) < 2:
        return network
    first, outputs, *others = named.arguments
    return network if outputs == classes else NamedNetwork(named.maker, (first, classes, *others))


def check_importable(network: Network) -> None:
    """Refuse a function that a fresh process could not find, before anything is trained with it."""
    if isinstance(network, nn.Module | NamedNetwork):
        return
    home = getattr(network, "__module__", "")
    in_a_notebook = home == "__main__" and not hasattr(sys.modules["__main__"], "__file__")
    if in_a_notebook or not can_be_sent(network):
        raise DataError(
            f"the network is made by {getattr(network, '__name__', repr(network))!s:.80}, which a fresh process "
            "cannot import, as a replay must: put the function into a module, such as my_network.py, and import it "
            "from there, or pass the network itself, a torch.nn.Module"
        )


def describe(network: nn.Module) -> tuple[str, list[tuple[str, str, bool]]]:
    """Describe the layers of a network and the kinds of its weights, to see whether they were changed."""
    return str(network), [
        (name, str(weights.dtype), weights.requires_grad) for name, weights in network.named_parameters()
    ]


def find_maker(maker: str) -> Any:
    """What a name such as `package.module:function` stands for."""
    module, colon, name = maker.partition(":")
    if not (colon and name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise ValueError(f"code is named as in package.module:function, not {maker!r}")
    try:
        thing = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        is_elsewhere = isinstance(error, ModuleNotFoundError) and error.name == module
        where = ". Be in its folder, or set PYTHONPATH" if is_elsewhere else ""
        raise ValueError(f"{maker} cannot be imported: {error}{where}") from error
    if not callable(thing):
        raise ValueError(f"{maker} is not a function")
    return thing


def check_takes(function: Any, what: str, *arguments: str) -> None:
    """Refuse a function of the caller's own that cannot be called with these arguments."""
    try:
        with suppress(ValueError):  # some that are written in C do not say what they take
            inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise DataError(f"{what} is called with {', '.join(arguments)}, and takes others: {error}") from None


def as_tuple(value: Any) -> Any:
    """Convert lists, which JSON has, to tuples."""
    if isinstance(value, dict):
        return {name: as_tuple(part) for name, part in value.items()}
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value
