"""A network's architecture as text: the tree of its modules with their settings, and the source of its own classes.

Weights are apart. The text is part of a model's hash, and is compared where a network is made again.
"""

import ast
import hashlib
import inspect
import textwrap
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LIBRARIES = "torch", "maxrr"  # whose classes are known by their names
BOOKKEEPING = frozenset(vars(nn.Module()))
NO_SETTING = Tensor, np.ndarray, type(None)  # what a forward pass may leave behind
PLAIN = bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, type(None)


def architecture(network: nn.Module) -> str:
    """Describe a network: one line for each module, then one for each class that neither PyTorch nor we define.

    >>> print(architecture(nn.Sequential(nn.Linear(4, 3), nn.LeakyReLU(0.1))))
    Sequential
    0 Linear in_features=4 out_features=3 weight:float32[3, 4] bias:float32[3]
    1 LeakyReLU inplace=False negative_slope=0.1
    """
    modules = list(network.named_modules(remove_duplicate=False))
    first: dict[int, str] = {}
    lines = []
    for name, module in modules:
        same = first.setdefault(id(module), name)
        about = f"= {same}" if same != name else f"{type(module).__name__} {settings(module)}"
        lines.append(f"{name} {about}".strip())
    own = {kind for _, module in modules for kind in type(module).__mro__[:-1] if not is_of_library(kind)}
    return "\n".join([*lines, *sorted(map(source_of, own))])


def is_of_library(kind: type) -> bool:
    """Whether PyTorch or this library defines a class."""
    return kind.__module__.partition(".")[0] in LIBRARIES


def settings(module: nn.Module) -> str:
    """Describe what a module is set to, its hooks, and the types of its weights.

    What somebody's own module is set to is a hash: an attribute may hold names of people, which no file should.
    """
    known = is_of_library(type(module))
    values = {name: value for name, value in sorted(vars(module).items()) if name not in BOOKKEEPING}
    found = [
        f"{name}={told(value)}"
        for name, value in values.items()
        if not (known and name.startswith("_")) and not isinstance(value, NO_SETTING)
    ]
    hooks = *module._forward_pre_hooks.values(), *module._forward_hooks.values()
    found += [f"hook={told(hook)}" for hook in hooks]
    stored = {**module._parameters, **module._buffers}.items()
    kinds = [
        f"{name}:{value.dtype}{list(value.shape)}"
        for name, value in stored
        if value is not None and name not in module._non_persistent_buffers_set
    ]
    return " ".join([*(found if known else [digest(" ".join(found))]), *kinds]).replace("torch.", "")


def told(value: Any) -> str:
    """Describe a setting: plain values, and what is made of them, as they are; all else by its name or type.

    >>> told((1, 0.5, torch.relu)), told(partial(torch.relu, inplace=True)), told(nn.ReLU())
    ('(1, 0.5, relu)', "partial(relu, (), {'inplace': True})", 'ReLU')
    """
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"({', '.join(told(each) for each in value if not isinstance(each, NO_SETTING))})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(told, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{told(key)}: {told(each)}' for key, each in value.items())}}}"
    if isinstance(value, partial):
        return f"partial({told(value.func)}, {told(value.args)}, {told(value.keywords)})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}{told({part.name: getattr(value, part.name) for part in fields(value)})}"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def source_of(kind: type) -> str:
    """Name a class with the hash of its source, less comments, docstrings and layout; alone where it has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return kind.__name__
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return f"{kind.__name__} {digest(ast.unparse(tree))}"


def digest(text: str) -> str:
    """Hash a text."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
