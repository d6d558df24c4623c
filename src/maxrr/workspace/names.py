"""The names of a workspace's files. Each carries the token of the workspace: what does not, somebody else wrote.

rows-<token>-<state>.bin, heads-<token>-<start of its hash>.safetensors, receipt-<token>-<number>.json, …
"""

import re

PARTS = EXTRACTOR, HEADS, TOMBSTONES, SECRETS = (
    "extractor.safetensors", "heads.safetensors", "tombstones.bin", "secrets.json",
)  # fmt: skip
FORMERLY = {"head.safetensors": HEADS, "forgotten.bin": TOMBSTONES}  # what these were called up to version 3
ROWS, RECEIPT, RANKING = "rows.bin", "receipt.json", "ranking"  # a receipt that is not handed out yet
LEARNED = {ROWS, EXTRACTOR, HEADS}  # whose bytes say something about records
ROOT, MARKER, LOCK, TURNSTILE = "workspace.json", ".maxrr", ".lock", ".turnstile"
RECEIPTS, EXPORTS = "receipts", "exports"
TEMPORARY = re.compile(r"\.maxrr-[0-9a-f]{16}\.tmp")  # as `write_atomically` calls them


def name_of(part: str, token: str, which: str | int) -> str:
    """What the file with a part is called. `which` tells it from earlier ones: a number, or the start of its hash.

    >>> name_of("rows.bin", "0123456789abcdef", 12), name_of("ranking", "0123456789abcdef", 0)
    ('rows-0123456789abcdef-12.bin', 'ranking-0123456789abcdef-0')
    """
    stem, dot, suffix = part.partition(".")
    return f"{stem}-{token}-{which}{dot}{suffix}"


def part_of(name: str, token: str) -> str | None:
    """The part that a file of this workspace holds, going by its name; None for what is not ours.

    >>> part_of("rows-0123456789abcdef-12.bin", "0123456789abcdef"), part_of("rows-12.bin", "0123456789abcdef")
    ('rows.bin', None)
    """
    for part in (*PARTS, *FORMERLY, ROWS, RECEIPT, RANKING):
        which = "[0-9a-f]{16}" if part in (*PARTS, *FORMERLY) else "0|[1-9][0-9]{0,17}"
        stem, dot, suffix = part.partition(".")
        if re.fullmatch(rf"{stem}-{token}-({which}){re.escape(dot + suffix)}", name, re.ASCII):
            return FORMERLY.get(part, part)
    return None


def is_named_after(name: str, content_hash: str) -> bool:
    """Whether the name of the file with a part has the start of this hash in it."""
    return name.partition(".")[0].endswith("-" + content_hash[:16])
