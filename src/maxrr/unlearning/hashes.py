"""The hash of a model, of its layers, weights and heads alone; and hashes under its key, for what is handed out."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maxrr.data.hashes import framed, identifier_bytes
from maxrr.nets.run_store import as_array

GONE_CLASS = "hmac:"  # before what stands among the weights for a class without records


class ExtractorHash:
    """A hash that has seen the extractor, and can go on with any heads.

    Parameters
    ----------
    layers : str
        Its architecture, as `maxrr.nets.architecture` describes it.
    extractor : mapping of str to Tensor
        Its weights and buffers by name.
    """

    def __init__(self, layers: str, extractor: Mapping[str, Tensor]) -> None:
        self._seen = hashlib.sha256(framed(layers.encode("utf-8", "surrogatepass")))
        for name, value in sorted(extractor.items()):
            self._seen.update(framed(framed(name.encode(), described(as_array(value.detach().cpu())))))

    def with_heads(self, classes: Sequence[str], weights: NDArray[Any], intercepts: NDArray[Any]) -> str:
        """The hash of a model with these heads."""
        whole = self._seen.copy()
        whole.update(framed(framed(*map(identifier_bytes, classes)), described(weights), described(intercepts)))
        return whole.hexdigest()

    def __deepcopy__(self, memo: dict[int, Any]) -> "ExtractorHash":
        return self  # it never changes


def model_hash(
    layers: str, extractor: Mapping[str, Tensor], classes: Sequence[str], weights: NDArray[Any],
    intercepts: NDArray[Any],
) -> str:  # fmt: skip
    """SHA-256 over the layers, every weight with its name, type and shape, and the heads with their classes' names."""
    return ExtractorHash(layers, extractor).with_heads(classes, weights, intercepts)


def described(array: NDArray[Any]) -> bytes:
    """An array's type, shape and bytes."""
    return framed(array.dtype.str.encode(), str(array.shape).encode(), np.ascontiguousarray(array).tobytes())


def keyed_hash(key: bytes, purpose: bytes, text: str) -> str:
    """A hash under the key, which can be handed out: without the key nobody can try out what it is of."""
    return hmac.digest(key, framed(purpose, text.encode("utf-8", "surrogatepass")), "sha256").hex()


def class_hmac(key: bytes, name: str) -> str:
    """The HMAC of the name of a class, which may be that of a person."""
    return keyed_hash(key, b"class", name)


def weights_by_hmac(key: bytes, weights: Mapping[str, float]) -> dict[str, float] | None:
    """Weights of classes by the HMACs of their names, which stand there already for classes without records."""
    found = {
        name.removeprefix(GONE_CLASS) if name.startswith(GONE_CLASS) else class_hmac(key, name): weight
        for name, weight in weights.items()
    }
    return dict(sorted(found.items())) or None
