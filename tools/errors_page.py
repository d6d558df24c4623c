"""Write the table of codes in docs/reference/errors.md, from the classes of errors themselves.

    python tools/errors_page.py

What stands before the table is written by hand. A test fails where the page is not what this writes.
"""

import inspect
from pathlib import Path

from maxrr import errors

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
FIRST = "| code | what is the case | caught as |\n"


def kinds() -> list[type[errors.MaxRRError]]:
    """Every kind of error, in the order in which the module defines them."""
    classes = [each for each in vars(errors).values() if inspect.isclass(each)]
    return [each for each in classes if issubclass(each, errors.MaxRRError) and each is not errors.MaxRRError]


def row(kind: type[errors.MaxRRError]) -> str:
    """A line of the table."""
    caught = kind.__name__ if kind.__name__ in errors.__all__ else kind.__bases__[0].__name__
    return f"| `{kind.code}` | {inspect.getdoc(kind).splitlines()[0]} | `{caught}` |"


def page() -> str:
    """The whole page: by hand up to the table, and written from the classes after it."""
    by_hand = PAGE.read_text(encoding="utf-8").partition(FIRST)[0]
    return by_hand + FIRST + "\n".join(["|---|---|---|", *sorted(map(row, kinds()))]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
