"""Public names of a package that are imported when they are first asked for, so that others need not wait for them."""

import importlib
import sys
from collections.abc import Callable, Mapping


def names_from(
    package: str, homes: Mapping[str, tuple[str, ...]], modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`.

    `homes` has its names by the module below it that they live in; `modules` below it are names of it, too.

    >>> get, _ = names_from("email", {"message": ("Message", "EmailMessage")}, ("mime",))
    >>> get("Message").__name__, get("mime").__name__
    ('Message', 'email.mime')
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of, *modules})

    return get, listed
