"""Engines by name, as in the shell: on this machine, on a Ray cluster, or as a file says."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from maxrr.parallel.engine import Engine
from maxrr.parallel.ray_cluster import CONNECTION, Ray, slots

LOCAL = "local"
CHOICES = (
    "'local', 'ray' for the cluster that $RAY_ADDRESS names or else one of this machine, its address as in "
    "'ray://host:10001', or a .toml file"
)
KINDS = {"cpus": (int, float), "gpus": (int, float), "ahead": (int,), "retries": (int,), "runtime_env": (dict,)}

WORDS = {(int, float): "a number", (int,): "a whole number", (dict,): "a table, as Ray has it"}

EngineLike = Engine | str | Path | None
"""An engine, or what `engine_from` makes one from."""


def engine_from(said: EngineLike) -> Engine | None:
    """The engine that somebody asks for.

    Parameters
    ----------
    said : Engine, str, path or None
        An engine itself, None or "local" for this machine as each work likes best, "ray" for the Ray cluster that
        $RAY_ADDRESS names or else one on this machine, "ray://host:10001" for another, or a .toml file with the fields
        of `Ray`.

    Returns
    -------
    Engine or None
        None for this machine.

    Raises
    ------
    ValueError
        It names no engine, or the file has something else.

    Examples
    --------
    >>> engine_from("local") is None, engine_from("ray://head:10001")
    (True, Ray(address='ray://head:10001', cpus=1, gpus=0, ahead=None, retries=3))
    """
    if said is None or said == LOCAL:
        return None
    if not isinstance(said, str | Path):
        if not callable(getattr(said, "as_finished", None)):
            raise ValueError(f"an engine is {CHOICES}, or an engine of maxrr.parallel, not {said!r:.80}")
        return said
    if said == "ray":
        return Ray()
    if str(said).startswith("ray://"):
        return Ray(str(said))
    if Path(said).suffix == ".toml":
        return in_file(Path(said))
    raise ValueError(f"an engine is {CHOICES}, not {str(said)!r}")


@contextmanager
def working_on(said: EngineLike) -> Iterator[Engine | None]:
    """The engine that somebody asks for, whose workers stay for all that is done in the block.

    Parameters
    ----------
    said
        As in `engine_from`.

    Yields
    ------
    Engine or None
        None for this machine.
    """
    engine = engine_from(said)
    with nullcontext() if engine is None else engine.kept() as kept:
        yield kept


def at_once(engine: Engine) -> int:
    """How many items an engine works on at once, as large as it is now; 1 for one that does not say."""
    if isinstance(engine, Ray):
        with CONNECTION.open(engine) as ray:
            return slots(ray, engine)
    return int(getattr(engine, "count", 1))


def in_file(path: Path) -> Engine | None:
    """The engine that a .toml file describes: `engine = …` as on the command line, and the other fields of `Ray`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist: an engine is {CHOICES}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"{path}: cannot be read as TOML: {error}") from None
    said = found.pop("engine", "ray")
    if not isinstance(said, str) or said.endswith(".toml"):
        raise ValueError(f"{path}: engine = {said!r:.80} should be 'local', 'ray' or 'ray://host:10001'")
    for name, value in found.items():
        if name not in KINDS:
            raise ValueError(f"{path}: {name} is none of engine, {', '.join(KINDS)}")
        if not isinstance(value, KINDS[name]) or isinstance(value, bool):
            raise ValueError(f"{path}: {name} = {value!r:.80} should be {WORDS[KINDS[name]]}")
    try:
        engine = engine_from(said)
        if found and engine is None:
            raise ValueError(f"{', '.join(found)} are for a Ray cluster, and the engine is {LOCAL!r}")
        return Ray(engine.address, **found) if isinstance(engine, Ray) else engine
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
