"""How pages are made: a template with the words, filled with values and charts that Python made.

A page is one file. It asks for nothing from elsewhere, and its policy forbids the browser to.
"""

import re
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from maxrr.report import words
from maxrr.report.marks import KINDS, swatch

GENERATOR = '<meta name="generator" content="maxrr">'  # as the layout has it
FILTERS = (
    words.capitalised, words.decimals, words.digits, words.duration, words.p_value, words.percent, words.scientific,
    words.spelled, words.thousands,
)  # fmt: skip


def render(package: str, template: str, **values: Any) -> str:
    """A whole page, from a template in the `templates` of a package.

    Raises
    ------
    LookupError
        If the template asks for something that is not there.
    """
    try:
        return environment(package).get_template(template).render(values)
    except UndefinedError as error:
        raise LookupError(str(error)) from error


@cache
def environment(package: str) -> Environment:
    """Templates of a package, which build on those of this one, and the words for numbers that they use."""
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("maxrr.report")]),
        autoescape=True, undefined=StrictUndefined, finalize=unparted, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {function.__name__: function for function in FILTERS}
    found.globals |= {"count": words.count, "swatch": swatch, "kinds": KINDS}
    return found


def unparted(value: Any) -> Any:
    """In text that goes into a template, spaces between numbers and units become ones at which no line ends.

    >>> unparted("5 ms, 95.5 % of 3 samples")
    '5\\xa0ms, 95.5\\xa0% of 3 samples'
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub(r"(?<=\d) (?=(ms|s|%)(?!\w))", "\u00a0", value)
    return value


def is_report(text: str) -> bool:
    """Whether this library made a page, so that another one may be written over it.

    Parameters
    ----------
    text : str
        What a file holds.

    Returns
    -------
    bool
        True if the text has the mark that every page of this library has.
    """
    return GENERATOR in text
