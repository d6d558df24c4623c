"""Requests of people as a service: a queue with deadlines, roles and pages, on the batch of a workspace.

Needs the extra `maxrr[service]`. `maxrr serve` starts it, and `app` is what it serves, for other servers and for tests.
"""

from maxrr.service.api import app

__all__ = ["app"]
