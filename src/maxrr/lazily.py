"""Public names of a package that are imported when they are first asked for, so that others need not wait for them."""

import importlib
from collections.abc import Callable, Mapping


def names_from(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """A package's `__getattr__`: `homes` has its names by the module below it that they live in.

    >>> names_from("email", {"message": ("Message", "EmailMessage")})("Message").__name__
    'Message'
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)

    return get
