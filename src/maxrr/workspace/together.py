"""Several requests, one after the other in memory, for one commit. Each has a receipt of its own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from maxrr.errors import Refused
from maxrr.progress import Progress
from maxrr.unlearning.forgetting import Change, execute
from maxrr.unlearning.plans import Plan, make_plan
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import Fitted
from maxrr.workspace.carried_out import CarriedOut
from maxrr.workspace.signed_receipts import Signer

Commit = Callable[[Fitted, Sequence[CarriedOut]], None]
Asked = Callable[[Fitted], Request]  # looks a request up in a state


@dataclass(eq=False)
class Together:
    """How far the requests have come.

    Attributes
    ----------
    now : Fitted
        The state after those that were carried out.
    done : list of CarriedOut
        What they add to the files.
    answers : list of Receipt or Refused
        One for each request.
    """

    now: Fitted
    done: list[CarriedOut] = field(default_factory=list)
    answers: list[Receipt | Refused] = field(default_factory=list)

    def carry_out(
        self, plan: Plan, signer: Signer, progress: Progress | None, commit: Commit | None = None
    ) -> Receipt:  # fmt: skip
        """Do what a plan for the present state says, and commit that and what was done before, if it is the last."""
        before = self.now

        def take(change: Change) -> None:
            for request, receipt in change.answers:
                self.done.append(CarriedOut.of(before, change.after, request, receipt, signer))
            self.now = change.after
            if commit is not None:
                commit(change.after, self.done)

        return execute(before, plan, take, progress)

    def answer(self, requests: Iterable[Asked], signer: Signer, progress: Progress | None) -> None:
        """Carry out requests, each looked up in the state that the ones before it have left. Some may be refused."""
        for look_up in requests:
            try:
                plan = make_plan(self.now, look_up(self.now))
                self.answers.append(self.carry_out(plan, signer, progress))
            except Refused as refused:
                self.answers.append(refused)
