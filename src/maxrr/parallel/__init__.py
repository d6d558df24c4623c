"""A map of one function over many items: in this thread, on several threads, in processes, or on a Ray cluster."""

from maxrr.parallel.processes import Processes
from maxrr.parallel.ray_cluster import Ray

__all__ = ["Processes", "Ray"]
