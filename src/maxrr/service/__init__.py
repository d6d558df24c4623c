"""Requests of people as a service: a queue with deadlines, roles and pages, on the batch of a workspace.

Needs the extra `maxrr[service]`. `maxrr serve` starts it, and `app` is what it serves, for other servers and for tests.
"""

import typing

from maxrr import lazily

__all__ = ["app"]

if typing.TYPE_CHECKING:  # what is not in `__all__` is for `maxrr serve`
    from maxrr.service.api import app
    from maxrr.service.settings import Settings as Settings
else:  # the library stays light without the extra
    __getattr__, __dir__ = lazily.names_from(__name__, {"api": ("app",), "settings": ("Settings",)})
