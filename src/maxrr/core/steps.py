"""How far a ranking is, as one number: training, embedding and solving overlap, and would talk over each other."""

from dataclasses import dataclass, field

from maxrr.progress import Progress


@dataclass
class Steps:
    """Records gone through by all runs: every epoch counts them once, and marking a run does, too."""

    progress: Progress | None
    records: int
    epochs: int
    runs: int
    stored: int  # of these, runs whose marks were on the disk before
    through: int = 0  # by the other runs, in training
    marks: int = 0  # of the other runs
    numbers: dict[str, float] = field(default_factory=dict)

    def trained(self, what: str, done: int, total: int, **numbers: float) -> None:
        """What training reports."""
        self.through, self.numbers = done, numbers
        self.show()

    def marked(self) -> None:
        """One more run is."""
        self.marks += 1
        self.show()

    def show(self) -> None:
        """Tell whoever wants to know."""
        if self.progress is None:
            return
        each = self.records * (self.epochs + 1)
        done = self.stored * each + self.through + self.marks * self.records
        marked = self.stored + self.marks
        self.progress(f"ranking by {self.runs} runs", done, self.runs * each, **self.numbers, marked=marked)
