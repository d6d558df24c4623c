"""A map of one function over many items: in this thread, on several threads, in processes, or on a Ray cluster."""

from maxrr.errors import WorkerLostError
from maxrr.parallel.by_name import EngineLike, engine_from, working_on
from maxrr.parallel.engine import Engine, Finished, InProcess, Results, Threads, cores, single_threaded_blas
from maxrr.parallel.processes import Processes
from maxrr.parallel.ray_cluster import Ray

__all__ = [
    "Engine",
    "EngineLike",
    "Finished",
    "InProcess",
    "Processes",
    "Ray",
    "Results",
    "Threads",
    "WorkerLostError",
    "cores",
    "engine_from",
    "single_threaded_blas",
    "working_on",
]
