"""What objects look like when printed, in Python and in the shell: counted things, and facts under their names.

What comes from files, such as the reason on a receipt, cannot draw: no character that steers a terminal reaches it.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

# C0, DEL and C1 steer terminals; the others turn the direction of writing, break lines, or are half a character.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Shown:
    """A class whose objects look in a notebook as they do when printed."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def tame(text: str, steering: re.Pattern[str] = STEERING) -> str:
    """Write out characters that steer a terminal.

    >>> tame("red: \\x1b[31m"), tame("cats\\nand dogs"), tame("2 × 3 – ‘é’")
    ('red: \\\\x1b[31m', 'cats\\\\nand dogs', '2 × 3 – ‘é’')
    """
    return steering.sub(lambda one: one[0].encode("unicode_escape").decode(), text)


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with the name of what is counted.

    >>> count(1, "record"), count(1420, "record"), count(2, "body", "bodies")
    ('1 record', '1,420 records', '2 bodies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_few(names: Sequence[Any]) -> str:
    """Write the first four of some names.

    >>> first_few(("a", "b")), first_few(range(9))
    ("'a', 'b'", '0, 1, 2, 3, …')
    """
    return ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Write each fact under its name, as lines of text.

    >>> print(facts([("records", "12"), ("in", "ws")]))
    records  12
    in       ws
    """
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{tame(name):<{width}}  {tame(value)}" for name, value in pairs)


def percent(share: float, decimals: int = 0) -> str:
    """Write a share of one as a percentage.

    >>> percent(0.517), percent(0.95491, 1)
    ('52 %', '95.5 %')
    """
    return f"{100 * share:.{decimals}f} %"


def duration(seconds: float) -> str:
    """Write seconds with two digits, in a unit that suits.

    >>> duration(0.0), duration(0.00496), duration(0.0658), duration(1.612), duration(75.0), duration(7_530.0)
    ('under a millisecond', '5.0 ms', '66 ms', '1.6 s', '75 s', '2.1 h')
    """
    if seconds < 0.00005:
        return "under a millisecond"
    if seconds < 0.9995:
        thousandths = 1e3 * seconds
        return f"{thousandths:.1f} ms" if thousandths < 9.95 else f"{thousandths:.0f} ms"
    if seconds < 600.0:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200.0 else f"{seconds / 3600:.1f} h"


def size(count: int) -> str:
    """Write a number of bytes in a unit that suits.

    >>> size(950), size(1_234_567)
    ('950 bytes', '1.2 MB')
    """
    return f"{count} bytes" if count < 1000 else f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
