"""Work for many seeds of which some has failed: what the others gave is kept first."""

from collections.abc import Sequence

from maxrr.errors import EngineError, WorkerLostError


def ends_all(error: BaseException, *, kept: bool) -> bool:
    """Whether work on other items should end, too: where its results are not kept, or a node is not as it must be.

    Such a node fails at once, and would take one item after the other.

    >>> ends_all(ValueError("diverged"), kept=True), ends_all(EngineError("another NumPy"), kept=True)
    (False, True)
    """
    return not kept or (isinstance(error, EngineError) and not isinstance(error, WorkerLostError))


def raise_first(failed: Sequence[tuple[Sequence[int], BaseException]]) -> None:
    """Raise what the work for some seeds has raised, naming those of other work that failed; nothing if none did.

    >>> raise_first([])
    """
    if not failed:
        return
    (seeds, first), *others = failed
    first.add_note(f"raised by the work for seed {', '.join(map(str, seeds))}")
    if others:
        first.add_note(
            f"work for other seeds failed, too: {', '.join(str(seed) for some, _ in others for seed in some)}"
        )
    raise first
