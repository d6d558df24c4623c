"""What objects look like when printed, in Python and in the shell: counted things, and facts under their names."""

from collections.abc import Sequence
from typing import Any


def count(number: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> count(1, "record"), count(1420, "record"), count(2, "body", "bodies")
    ('1 record', '1,420 records', '2 bodies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_few(names: Sequence[Any]) -> str:
    """The first four of some names.

    >>> first_few(("a", "b")), first_few(range(9))
    ("'a', 'b'", '0, 1, 2, 3, …')
    """
    return ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Each fact under its name, as lines of text.

    >>> print(facts([("records", "12"), ("in", "ws")]))
    records  12
    in       ws
    """
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def percent(share: float, decimals: int = 0) -> str:
    """A share of one.

    >>> percent(0.517), percent(0.95491, 1)
    ('52 %', '95.5 %')
    """
    return f"{100 * share:.{decimals}f} %"


def duration(seconds: float) -> str:
    """Two digits of it, in a unit that suits.

    >>> duration(0.00496), duration(0.0658), duration(1.612), duration(75.0)
    ('5.0 ms', '66 ms', '1.6 s', '75 s')
    """
    if seconds < 0.9995:
        thousandths = 1e3 * seconds
        return f"{thousandths:.1f} ms" if thousandths < 9.95 else f"{thousandths:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def size(count: int) -> str:
    """Bytes as people read them.

    >>> size(950), size(1_234_567)
    ('950 bytes', '1.2 MB')
    """
    return f"{count} bytes" if count < 1000 else f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
