"""A sign for each verdict, the same in figures, on the page and in the terminal; and a mark for equivalence."""

SIGNS = {"agrees": "=", "near": "≈", "differs": "≠"}
KEY = ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
MARKS = {"equivalent": "✓", "different": "✗", "open": "?"}
