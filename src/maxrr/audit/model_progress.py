"""How far an audit is: how many of its models are made and looked at, on one bar from the first to the last."""

from maxrr.progress import Progress


class ModelProgress:
    """Counts models, and passes on what is heard from those in training.

    Parameters
    ----------
    progress : Progress or None
        Who wants to know.
    models : int
        How many models there will be.
    """

    def __init__(self, progress: Progress | None, models: int) -> None:
        self.progress = progress
        self.models = models
        self.made = 0
        self.tell()

    def one_more(self) -> None:
        """A model is made and was looked at."""
        self.made += 1
        self.tell()

    def training(self, networks: int) -> Progress | None:
        """What training so many networks together is to call: it does not finish models, but shows that it goes on."""
        before = self.made

        def told(what: str, done: int, total: int, **numbers: float) -> None:
            self.tell(trained=before + networks * done / total, **numbers)

        return None if self.progress is None else told

    def tell(self, **numbers: float) -> None:
        if self.progress is not None:
            self.progress("models", self.made, self.models, **numbers)
