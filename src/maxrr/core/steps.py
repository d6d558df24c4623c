"""How far a ranking is, as one number for training, embedding and solving, which overlap."""

from dataclasses import dataclass, field

from maxrr.progress import Progress


@dataclass
class Steps:
    """Records gone through by all runs: every epoch counts them once, and solving a run does, too."""

    progress: Progress | None
    records: int
    epochs: int
    runs: int
    stored: int  # of these, runs whose votes were on the disk before
    through: int = 0  # by the other runs, in training
    done: int = 0  # of the other runs
    numbers: dict[str, float] = field(default_factory=dict)

    def trained(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Note how far training is. It is the `progress` of the training."""
        self.through, self.numbers = done, numbers
        self.show()

    def solved(self) -> None:
        """The votes of one more run are known."""
        self.done += 1

    def finished(self, runs: int) -> None:
        """So many runs were trained and solved elsewhere."""
        self.through += runs * self.records * self.epochs
        self.done += runs

    def show(self) -> None:
        """Call `progress`."""
        if self.progress is None:
            return
        each = self.records * (self.epochs + 1)
        done = self.stored * each + self.through + self.done * self.records
        solved = self.stored + self.done
        self.progress(f"ranking by {self.runs} runs", done, self.runs * each, **self.numbers, solved=solved)
