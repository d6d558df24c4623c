"""A lock of each object's own, made when first needed, however the object came to be."""

from threading import Lock, RLock
from typing import Any, cast

_making = Lock()


def lock_of(owner: Any) -> RLock:
    """The lock of an object, the same at every call. Copies of the object must leave `_own_lock` out."""
    found: RLock | None = vars(owner).get("_own_lock")
    if found is None:
        with _making:
            return cast("RLock", vars(owner).setdefault("_own_lock", RLock()))
    return found
