"""One function for many items: here, on threads, or in processes, the results in order."""

from maxrr.parallel.engine import Engine, InProcess, cores
from maxrr.parallel.processes import Processes, WorkerLostError
from maxrr.parallel.threads import Threads, single_threaded_blas

__all__ = ["Engine", "InProcess", "Processes", "Threads", "WorkerLostError", "cores", "single_threaded_blas"]
