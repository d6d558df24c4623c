"""A network's architecture as text: the tree of its modules with their settings, and the source of its own classes.

Weights are apart. The text is part of a model's hash, and is compared where a network is made again.
"""

import ast
import hashlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from enum import Enum
from functools import cache, partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

LIBRARIES = "torch", "maxrr"  # whose classes are known by their names
BOOKKEEPING = frozenset(vars(nn.Module()))
PLAIN = bool, int, float, complex, str, bytes, range, Enum, np.generic, torch.dtype, torch.device, type(None)
HOLDS, UNHASHED = "holds ", re.compile("#sha256:[0-9a-f]{64}#")  # numbers in attributes: their lines, and their hashes


def architecture(network: nn.Module, used: nn.Module | None = None) -> str:
    """Describe a network: one line for each module, then one for each class that neither PyTorch nor we define.

    `used` is a copy that has been called since: what a call changes, such as a counter or a cache, is left out.

    >>> print(architecture(nn.Sequential(nn.Linear(4, 3), nn.LeakyReLU(0.1))))
    Sequential
    0 Linear in_features=4 out_features=3 weight:float32[3, 4] bias:float32[3]
    1 LeakyReLU inplace=False negative_slope=0.1
    """
    modules = list(network.named_modules(remove_duplicate=False))
    later = dict((used or network).named_modules(remove_duplicate=False))
    first: dict[int, str] = {}
    lines = []
    for name, module in modules:
        same = first.setdefault(id(module), name)
        if same != name:
            lines.append(f"{name} = {same}")
            continue
        found, numbers = settings(module, later.get(name, module))
        lines.append(f"{name} {type(module).__name__} {found}".strip())
        lines += [f"{HOLDS}{name} {numbers}"] if numbers else []
    own = {kind for _, module in modules for kind in type(module).__mro__[:-1] if not is_of_library(kind)}
    return "\n".join([*lines, *sorted(f"class {source_of(kind)}" for kind in own)])


def is_of_library(kind: type) -> bool:
    """Whether PyTorch or this library defines a class."""
    return kind.__module__.partition(".")[0] in LIBRARIES


def without_numbers(layers: str) -> str:
    """Leave out the hashes of numbers in tensors and arrays, which another machine may round differently."""
    return "\n".join(line for line in layers.splitlines() if not line.startswith(HOLDS))


def settings(module: nn.Module, used: nn.Module) -> tuple[str, str]:
    """Describe what a module is set to, its hooks, and the types of its weights; and hash numbers in its attributes.

    What somebody's own module is set to is a hash: an attribute may hold names of people, which no file should.
    """
    now, later = attributes(module), attributes(used)
    kept = [name for name, value in now.items() if later.get(name) == value]
    plain = {name: UNHASHED.sub("", now[name]) for name in kept}
    numbers = digest(" ".join(now[name] for name in kept)) if any(plain[name] != now[name] for name in kept) else ""
    found = [f"{name}={value}" for name, value in plain.items()]
    stored = {**module._parameters, **module._buffers}.items()
    kinds = [
        f"{name}:{value.dtype}{list(value.shape)}"
        for name, value in stored
        if value is not None and name not in module._non_persistent_buffers_set
    ]
    text = found if is_of_library(type(module)) else [digest(" ".join(found))]
    return " ".join([*text, *kinds]).replace("torch.", ""), numbers


def attributes(module: nn.Module) -> dict[str, str]:
    """Describe each attribute, buffers that are not persistent among them; of modules of PyTorch the public ones."""
    known = is_of_library(type(module))
    values = {name: value for name, value in sorted(vars(module).items()) if name not in BOOKKEEPING}
    values |= {name: module._buffers.get(name) for name in sorted(module._non_persistent_buffers_set)}
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    values |= {"hooks": hooks} if hooks else {}
    return {name: told(value) for name, value in values.items() if not (known and name.startswith("_"))}


def told(value: Any, depth: int = 0) -> str:
    """Describe a value: plain ones as they are, numbers in tensors and arrays by their hash, others by what they hold.

    >>> told((1, 0.5, torch.relu)), told(partial(torch.relu, inplace=True)), told(nn.ReLU())
    ('(1, 0.5, relu)', "partial(relu, (), {'inplace': True})", 'ReLU')
    """

    def each(values: Iterable[Any]) -> list[str]:
        return [told(one, depth + 1) for one in values]

    kind = type(value)
    if isinstance(value, PLAIN) or depth > 6:  # objects in each other
        return repr(value) if isinstance(value, PLAIN) else kind.__name__
    if isinstance(value, Tensor | np.ndarray) and not isinstance(value, nn.Parameter):
        return numbers(value)
    if isinstance(value, tuple | list):
        return f"({', '.join(each(value))})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(each(value)))}}}"
    if isinstance(value, dict):
        pairs = zip(each(value), each(value.values()), strict=True)
        return f"{{{', '.join(f'{name}: {one}' for name, one in pairs)}}}"
    if isinstance(value, partial):
        return f"partial({', '.join(each((value.func, value.args, value.keywords)))})"
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = [*(value.__defaults__ or ()), *cells]
        return value.__name__ + (told(held, depth + 1) if held else "")
    others = (*LIBRARIES, *sys.stdlib_module_names)
    own = kind.__module__.partition(".")[0] not in others and not isinstance(value, nn.Module | type)
    if isinstance(value, SimpleNamespace) or (own and hasattr(value, "__dict__")):
        return kind.__name__ + told(vars(value), depth + 1)
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else kind.__name__


def numbers(value: Tensor | NDArray[Any]) -> str:
    """Describe a tensor or an array by its type, shape and hash."""
    flat: Any = value
    if isinstance(value, Tensor):
        try:
            flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        except RuntimeError:  # sparse, quantized
            return str(value.dtype)
    return f"{value.dtype}{tuple(value.shape)}#{digest(flat.tobytes().hex() if flat.dtype != object else '')}#"


@cache  # a file may be edited while the class of before goes on
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
