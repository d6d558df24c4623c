"""The names of a workspace's files and log. Each carries its token: what does not, somebody else wrote.

rows-<token>-<state>.bin, heads-<token>-<start of its hash>.safetensors, receipts-<token>.jsonl, …
"""

import re

PARTS = EXTRACTOR, HEADS, SECRETS = "extractor.safetensors", "heads.safetensors", "secrets.json"
GROWING = SIGNED, TOMBSTONES, PROOFS = "receipts.jsonl", "tombstones.bin", "proofs.bin"  # files that only grow
ROWS, JOURNAL, RANKING = "rows.bin", "journal.bin", "ranking"
LEARNED = {ROWS, EXTRACTOR, HEADS}  # whose bytes say something about records
ROOT, MARKER, LOCK, TURNSTILE = "workspace.json", ".maxrr", ".lock", ".turnstile"
RECEIPTS, EXPORTS, AUDITS = "receipts", "exports", "audits"  # the log beside them: `maxrr.evidence.log.LOG`
TEMPORARY = re.compile(r"\.maxrr-[0-9a-f]{16}\.tmp")  # as `write_atomically` calls them


def name_of(part: str, token: str, which: str | int) -> str:
    """What the file with a part is called. `which` tells it from earlier ones: a number, or the start of its hash.

    >>> name_of("rows.bin", "0123456789abcdef", 12), name_of("ranking", "0123456789abcdef", 0)
    ('rows-0123456789abcdef-12.bin', 'ranking-0123456789abcdef-0')
    """
    stem, dot, suffix = part.partition(".")
    return f"{stem}-{token}-{which}{dot}{suffix}"


def growing_name(part: str, token: str) -> str:
    """What a file that only grows is called: there is one of a kind.

    >>> growing_name("proofs.bin", "0123456789abcdef")
    'proofs-0123456789abcdef.bin'
    """
    stem, dot, suffix = part.partition(".")
    return f"{stem}-{token}{dot}{suffix}"


def origin_of(token: str, since: str = "") -> str:
    """The name of the log of a workspace, under which its checkpoints are signed.

    `since` is when the loss of a newer copy was last accepted, with which another log begins.
    """
    return f"maxrr.dev/workspace/{token}" + (f"/{since}" if since else "")


def part_of(name: str, token: str) -> str | None:
    """The part that a file of this workspace holds, going by its name; None for what is not ours.

    >>> part_of("rows-0123456789abcdef-12.bin", "0123456789abcdef"), part_of("rows-12.bin", "0123456789abcdef")
    ('rows.bin', None)
    """
    if token not in name:
        return None
    for part in GROWING:
        if name == growing_name(part, token):
            return part
    for part in (*PARTS, ROWS, JOURNAL, RANKING):
        which = "[0-9a-f]{16}" if part in PARTS else "0|[1-9][0-9]{0,17}"
        stem, dot, suffix = part.partition(".")
        if re.fullmatch(rf"{stem}-{token}-({which}){re.escape(dot + suffix)}", name, re.ASCII):
            return part
    return None


def is_named_after(name: str, content_hash: str) -> bool:
    """Whether the name of the file with a part has the start of this hash in it."""
    return name.partition(".")[0].endswith("-" + content_hash[:16])
