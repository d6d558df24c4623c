"""Recompute a whole log from its entries, and name the first thing that is wrong."""

from collections.abc import Sequence
from pathlib import Path

from maxrr.errors import EvidenceError
from maxrr.evidence.append_tree import Frontier, leaf_hash
from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.exact_text import to_base64
from maxrr.evidence.log import Log
from maxrr.evidence.signing import PublicKey
from maxrr.evidence.tiles import HASH, HEIGHT, WIDTH, Kind, Tiles, edge_of, levels, pack, tile_path
from maxrr.files import read_regular
from maxrr.plain_text import count


def check_log(folder: str | Path, origin: str | None, keys: Sequence[PublicKey]) -> Checkpoint:
    """Verify a log's newest checkpoint and recompute every hash that it rests on from the entries.

    Parameters
    ----------
    folder
        The log's folder.
    origin : str or None
        The name that the log must have; None for whichever name it says.
    keys : sequence of PublicKey
        The log's keys, as in `Checkpoint.read`.

    Returns
    -------
    Checkpoint
        The checkpoint, of which everything holds. To see that nothing was taken back, compare it with one that was
        kept: `Checkpoint.require_extends`.

    Raises
    ------
    EvidenceError
        Names the first thing that is wrong: the checkpoint, a bundle of entries or a tile that is missing or damaged,
        an entry or a hash that does not fit, a root that is not that of the entries.
    """
    log = Log.open(folder, origin, keys)
    checkpoint, frontier = log.checkpoint, Frontier()
    tiles = Tiles(folder, checkpoint.size, exact=True)
    edges = [list[bytes]() for _ in range(levels(checkpoint.size))]  # the hashes of each level since its last full tile
    bundle = list[bytes]()
    for index in range(-(-checkpoint.size // WIDTH)):
        bundle = tiles.entries(index)
        for entry in bundle:
            for height, root in frontier.push(leaf_hash(entry)):
                level, rest = divmod(height, HEIGHT)
                if rest == 0:
                    edges[level].append(root)
                    if len(edges[level]) == WIDTH:
                        _require_hashes(tiles, level, edge_of(level, frontier.size) - 1, edges[level])
                        edges[level] = []
    for level, edge in enumerate(edges):
        if edge:
            _require_hashes(tiles, level, edge_of(level, checkpoint.size), edge)
    if frontier.root != checkpoint.root:
        raise EvidenceError(
            f"the root of {count(checkpoint.size, 'entry', 'entries')} is {to_base64(frontier.root)}, and the "
            "checkpoint has "
            f"{to_base64(checkpoint.root)}: entries and tiles were exchanged together"
        )
    for level, edge in enumerate(edges):
        _require_earlier(tiles, level, [HASH * width for width in range(len(edge) + 1)], b"".join(edge))
    ends = [len(pack(bundle[:width])) for width in range(checkpoint.size % WIDTH + 1)]
    _require_earlier(tiles, "entries", ends, pack(bundle)[: ends[-1]])
    return checkpoint


def _require_hashes(tiles: Tiles, level: int, index: int, hashes: list[bytes]) -> None:
    """Refuse a tile whose hashes are not these."""
    found = Tiles(tiles.folder, tiles.size, exact=True).hashes(level, index)  # not kept: a log may outgrow the memory
    for place, (read, computed) in enumerate(zip(found, hashes, strict=True)):
        if read != computed:
            where = WIDTH * index + place
            of = f"entry {where}" if level == 0 else f"the tile {tile_path(level - 1, where)}"
            raise EvidenceError(f"{tile_path(level, index, len(hashes))}: hash {place} is not that of {of}")


def _require_earlier(tiles: Tiles, kind: Kind, ends: list[int], content: bytes) -> None:
    """Refuse a partial tile of an earlier checkpoint that is not the beginning of the one of today."""
    index = edge_of(kind, tiles.size)
    for width, end in enumerate(ends[:-1]):
        path = tiles.folder / tile_path(kind, index, width) if width else None
        if path is not None and path.exists() and read_regular(path) != content[:end]:
            raise EvidenceError(f"{tile_path(kind, index, width)} is not the beginning of what the log has become")
