"""Every public name is documented: what it takes, what it gives, and every field that it has.

Checked by numpydoc's own rules, and for dataclasses field by field.
"""

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator

import pytest
from numpydoc.docscrape import FunctionDoc
from numpydoc.validate import validate

ROOMS = (
    "errors", "evidence", "parallel", "svm", "data", "nets", "core", "unlearning", "audit", "workspace", "serving",
)  # fmt: skip

RULES = {
    "GL08",  # there is a docstring,
    "SS03",  # whose first line ends with a period
    "PR01",  # every parameter is in it,
    "PR02",  # and no other
    "PR03",  # in the order in which they are taken
    "PR07",  # described, not only named
    "RT01",  # what is returned,
    "RT03",  # described as well
    "YD01",  # what is yielded
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_a_complete_docstring(room: str) -> None:
    gaps = [f"{each[0]}: {gap}" for each in public_things(f"maxrr.{room}") for gap in gaps_of(*each)]
    if gaps:
        pytest.fail(f"{len(gaps)} gaps in the docstrings of maxrr.{room}:\n" + "\n".join(gaps), pytrace=False)


def public_things(package: str) -> Iterator[tuple[str, object, type | None]]:
    """The classes and functions that a package exports, with the methods and properties of the classes."""
    module = importlib.import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        yield f"{package}.{name}", thing, None
        if inspect.isclass(thing):
            for method in own_public_names(thing):
                yield f"{package}.{name}.{method}", inspect.getattr_static(thing, method), thing


def own_public_names(kind: type) -> list[str]:
    """Methods and properties that a class, or a class of ours that it inherits from, defines."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("maxrr.")]
    return sorted({
        name for base in ours for name, value in vars(base).items()
        if (name == "__call__" or not name.startswith("_"))
        and (inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property))
    })  # fmt: skip


def gaps_of(name: str, thing: object, owner: type | None) -> Iterator[str]:
    """What is missing from one docstring, by numpydoc's rules, and by ours where a class has fields or properties."""
    passed_over = set[str]()
    fields = fields_of(thing)
    if fields or is_never_called(thing):
        passed_over = {"PR01", "PR02", "PR03"}
    elif says_where(thing):
        passed_over = {"PR01", "RT01", "YD01"}
    elif isinstance(thing, property) and owner is not None and name.rpartition(".")[2] in described(owner):
        passed_over = {"GL08"}
    for code, message in validate(name)["errors"]:
        if code in RULES - passed_over:
            yield f"{code} {message}"
    for field in set(fields) - described(thing):
        yield f"the field {field} is not described"


def is_never_called(thing: object) -> bool:
    """Whether it is a protocol or an enumeration: callers make none, so that there are no parameters to describe."""
    return inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or issubclass(thing, enum.Enum))


def says_where(thing: object) -> bool:
    """Whether it is described as another one is: 'As `Engine.map`.'"""
    return bool(re.search(r"\b[Aa]s `[\w.]+`", inspect.getdoc(thing) or "")) and inspect.isroutine(thing)


def fields_of(thing: object) -> list[str]:
    """The fields of a dataclass or of a named tuple, or the members of an enum."""
    if not inspect.isclass(thing):
        return []
    if issubclass(thing, enum.Enum):  # nobody makes one: its parameters are those of the metaclass
        return list(thing.__members__)
    if dataclasses.is_dataclass(thing):
        return [field.name for field in dataclasses.fields(thing) if not field.name.startswith("_")]
    return list(getattr(thing, "_fields", ()))


def described(kind: object) -> set[str]:
    """What the docstring of a class describes as a parameter or an attribute."""
    doc = FunctionDoc(None, doc=inspect.getdoc(kind) or "")
    entries = [entry for section in ("Parameters", "Attributes") for entry in doc[section] if entry.desc]
    return {name.strip() for entry in entries for name in entry.name.split(",")}
