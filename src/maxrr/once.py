"""Properties that are computed when they are first asked for, and then kept.

As `functools.cached_property`, which holds a lock in Python 3.11: a process that is forked while another thread holds
it would wait for ever. Here two threads may both find the value; the last one stays, and they are the same.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:  # noqa: N801 (used like property)
        """A method without arguments, called once for each object."""

        def __init__(self, find: Any) -> None:
            self.find = find
            self.__doc__ = find.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.find(instance)
            return value


__all__ = ["once"]
