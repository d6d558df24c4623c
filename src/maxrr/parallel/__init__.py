"""An ordered map of one function over many items: in this thread, on several threads, or in several processes."""

from maxrr.parallel.engine import Engine, InProcess, Results, cores
from maxrr.parallel.processes import Processes, WorkerLostError
from maxrr.parallel.threads import Threads, single_threaded_blas

__all__ = ["Engine", "InProcess", "Processes", "Results", "Threads", "WorkerLostError", "cores", "single_threaded_blas"]
