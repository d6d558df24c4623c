"""Collections that never change and grow by a few at a time: the larger one shares what the smaller one has.

They are kept in layers, each at least twice as large as the next: a new layer takes in those before it that are too
small for that. So nothing is copied more often than the logarithm of the whole says, and on average that is all a
request costs, however many there were before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")


class Layered(Mapping[K, V], Generic[K, V]):
    """A mapping. Of two entries with one key the later counts.

    >>> few = Layered({"a": 1})
    >>> more = few.with_more({"b": 2, "a": 3})
    >>> dict(few), dict(more)
    ({'a': 1}, {'a': 3, 'b': 2})
    """

    __slots__ = ("_layers", "_size")

    def __init__(self, given: Mapping[K, V] | None = None) -> None:
        self._layers: tuple[Mapping[K, V], ...] = (dict(given),) if given else ()
        self._size = len(given or ())

    def with_more(self, more: Mapping[K, V]) -> "Layered[K, V]":
        """The same with more entries."""
        if not more:
            return self
        found: Layered[K, V] = Layered()
        found._size = self._size + sum(key not in self for key in more)
        layers, newest = list(self._layers), dict(more)
        while layers and len(layers[-1]) < 2 * len(newest):
            newest = {**layers.pop(), **newest}
        found._layers = (*layers, newest)
        return found

    def __getitem__(self, key: K) -> V:
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(key in layer for layer in self._layers)

    def get(self, key: K, default: Any = None) -> Any:
        """As that of a dict; without the exception that `Mapping` makes of each key that is not there."""
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key]
        return default

    def __iter__(self) -> Iterator[K]:
        for number, layer in enumerate(self._layers):
            before = self._layers[:number]
            yield from (key for key in layer if not any(key in other for other in before))

    def __len__(self) -> int:
        return self._size


class Row(Sequence[V], Generic[V]):
    """A sequence.

    >>> few = Row(["a", "b"])
    >>> few.with_next("c")[-1], len(few)
    ('c', 2)
    """

    __slots__ = ("_layers", "_size")

    def __init__(self, given: Iterable[V] = ()) -> None:
        first = tuple(given)
        self._layers: tuple[tuple[V, ...], ...] = (first,) if first else ()
        self._size = len(first)

    def with_next(self, one: V) -> "Row[V]":
        """The same with one more at the end."""
        found: Row[V] = Row()
        newest: tuple[V, ...] = (one,)
        layers = list(self._layers)
        while layers and len(layers[-1]) < 2 * len(newest):
            newest = (*layers.pop(), *newest)
        found._layers, found._size = (*layers, newest), self._size + 1
        return found

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[V, ...]: ...
    def __getitem__(self, place: int | slice) -> V | tuple[V, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        left = place + self._size if place < 0 else place
        if 0 <= left < self._size:
            for layer in self._layers:
                if left < len(layer):
                    return layer[left]
                left -= len(layer)
        raise IndexError(f"there are {self._size}, and none has number {place}")

    def __iter__(self) -> Iterator[V]:
        for layer in self._layers:
            yield from layer

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))
