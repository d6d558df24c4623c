"""When, where and with what something was measured."""

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import maxrr

PACKAGES = ("numpy", "scipy", "scikit-learn", "clarabel", "torch")


def circumstances() -> dict[str, Any]:
    """Date, machine, how busy it was before, and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "versions": {"python": platform.python_version(), "maxrr": maxrr.__version__, **installed()},
    }


def processor() -> str:
    """Its name, where the system knows one."""
    if shutil.which("lscpu"):
        name = re.search(r"Model name:\s*(.+)", subprocess.run(["lscpu"], capture_output=True, text=True).stdout)
        if name:
            return f"{name[1]} ({platform.machine()})"
    return platform.processor() or platform.machine()


def installed() -> dict[str, str]:
    """Versions of the packages that are there: machines with a graphics processor may have few."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
