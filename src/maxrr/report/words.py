"""Numbers and days as people read them."""

from datetime import datetime
from math import isfinite

from maxrr.plain_text import count as count
from maxrr.plain_text import duration as duration
from maxrr.plain_text import percent as percent


def thousands(number: int) -> str:
    """Write a number with a comma after each three digits.

    >>> thousands(1420)
    '1,420'
    """
    return f"{number:,}"


def decimals(value: float, places: int = 2) -> str:
    """A number with a certain count of digits after the point.

    >>> decimals(0.5), decimals(0.12345, 3)
    ('0.50', '0.123')
    """
    return f"{value:.{places}f}"


def digits(value: float, number: int = 3) -> str:
    """A number with a certain count of significant digits, and a true minus sign.

    >>> digits(-50.123), digits(0.00123, 2)
    ('−50.1', '0.0012')
    """
    return f"{value:.{number}g}".replace("-", "−")


def listed(items: list[str]) -> str:
    """Join words with commas and an 'and'.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))


def spelled(number: int) -> str:
    """Write small numbers as words.

    >>> spelled(3), spelled(36)
    ('three', '36')
    """
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    return words[number] if number < len(words) else f"{number:,}"


def scientific(value: float) -> str:
    """Write one digit and a power of ten, which no line break can part.

    >>> scientific(8.4e-15), scientific(0.0), scientific(float("inf"))
    ('8\u202f×\u202f10⁻¹⁵', '0', 'inf')
    """
    if value == 0.0 or not isfinite(value):
        return f"{value:g}"
    digit, power = f"{value:.0e}".split("e")
    return f"{digit}\u202f×\u202f10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def p_value(p: float) -> str:
    """A p-value with two significant digits.

    >>> p_value(0.0384), p_value(0.8), p_value(1.0)
    ('0.038', '0.8', '1')
    """
    return f"{p:.2g}"


def capitalised(text: str) -> str:
    """Write the first letter of a text in upper case.

    >>> capitalised("the paper's LiRA")
    "The paper's LiRA"
    """
    return text[:1].upper() + text[1:]


def day(time: str) -> str:
    """The day of a moment, such as that of a receipt or an audit.

    >>> day("2026-11-18T07:00:00+00:00")
    '18 November 2026'
    """
    moment = datetime.fromisoformat(time)
    return f"{moment.day} {moment:%B %Y}"
