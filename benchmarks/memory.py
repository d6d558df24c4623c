"""Memory of this process, from the system's own books."""

import ctypes
import gc
import re
from pathlib import Path

STATUS = Path("/proc/self/status")


def held() -> int:
    """Bytes held now."""
    return read("VmRSS")


def peak() -> int:
    """Bytes held at most, since the process started or `reset_peak`.

    Not `ru_maxrss`: in a child process that starts at what its parent held.
    """
    return read("VmHWM")


def reset_peak() -> None:
    """Count the peak from here on, after what is no longer used went back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def read(field: str) -> int:
    (kilobytes,) = re.findall(rf"{field}:\s+(\d+) kB", STATUS.read_text())
    return 1024 * int(kilobytes)
