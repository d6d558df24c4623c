"""The states of a request, and which follows which."""

ERASE, ADD, RECTIFY = "erase", "add", "rectify"  # kinds of requests
RECEIVED, PLANNED, WAITING, EXECUTING = "received", "planned", "waiting", "executing"
DONE, REFUSED, FAILED, CANCELLED = "done", "refused", "failed", "cancelled"

FOLLOWS = {
    RECEIVED: (PLANNED, CANCELLED), PLANNED: (EXECUTING, WAITING, CANCELLED), WAITING: (PLANNED, REFUSED, CANCELLED),
    EXECUTING: (DONE, REFUSED, FAILED, WAITING), FAILED: (PLANNED, REFUSED),
    DONE: (PLANNED,), REFUSED: (), CANCELLED: (),  # what was done in a copy of the workspace that is gone
}  # fmt: skip

DECIDED = {PLANNED: (WAITING, FAILED), REFUSED: (WAITING, FAILED), CANCELLED: (RECEIVED, PLANNED, WAITING)}
"""The states in which somebody may decide that a request becomes this: none in which a worker has it."""

STATES = tuple(FOLLOWS)
OPEN = RECEIVED, PLANNED, WAITING, EXECUTING
LEFT = *OPEN, FAILED  # without an answer: what was stopped by a problem may be tried again
ENDED = DONE, REFUSED, FAILED, CANCELLED
UNANSWERED = REFUSED, CANCELLED  # for good: there is no answer that names anybody


def leads_to(state: str) -> list[str]:
    """Return the states from which this one can be reached.

    >>> leads_to("executing"), leads_to("refused")
    (['planned'], ['waiting', 'executing', 'failed'])
    """
    return [before for before, after in FOLLOWS.items() if state in after]
