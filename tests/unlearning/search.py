"""Everything that can be reached from an object, to look for what should not be there."""

import gc
import types

import numpy as np
import torch

CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, property, staticmethod)


def reachable(root):
    """All objects below one, each once. Classes, modules and functions are code, not what it holds."""
    seen, waiting = {}, [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, CODE):
            continue
        seen[id(thing)] = thing
        waiting += gc.get_referents(thing)
        if isinstance(thing, torch.Tensor):
            waiting.append(np.array(thing.detach().cpu().numpy()))  # a copy, with no tensor behind it
        if isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)
        if hasattr(thing, "__dict__"):
            waiting.append(vars(thing))
    return list(seen.values())


def buffers(things):
    """The bytes of all arrays, tensors, byte strings and strings among them."""
    for thing in things:
        if isinstance(thing, np.ndarray):
            yield np.ascontiguousarray(thing).tobytes()
        elif isinstance(thing, bytes | bytearray):
            yield bytes(thing)
        elif isinstance(thing, str):
            yield thing.encode("utf-8", "surrogatepass")


def holds_bytes(root, wanted):
    """Which of some byte strings occur anywhere below an object."""
    everything = b"\n".join(buffers(reachable(root)))
    return [content for content in wanted if content in everything]


def holds_ids(root, ids):
    """Which of some ids are a value below an object: a number, an entry of an array, or part of a string."""
    found = set()
    for thing in reachable(root):
        if isinstance(thing, int | float | np.generic) and not isinstance(thing, np.str_ | np.bytes_):
            found |= {id_ for id_ in ids if not isinstance(id_, str) and thing == id_}
        elif isinstance(thing, np.ndarray) and thing.dtype.kind in ("U" if isinstance(ids[0], str) else "iuf"):
            found |= set(np.intersect1d(thing, ids).tolist())
        elif isinstance(thing, str):
            found |= {id_ for id_ in ids if str(id_) in thing}
    return sorted(found)
