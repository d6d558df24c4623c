"""Exit codes: what a script learns without reading."""

DONE, FAILED, USAGE, REFUSED, UNPROVED, UNDECIDED, AFTERWARDS, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

MEANING = {
    DONE: "done",
    FAILED: "failed: bad input, a damaged or missing file, a full disk; nothing was changed",
    USAGE: "wrong usage",
    REFUSED: "refused: the request cannot be carried out as it is; nothing was changed",
    UNPROVED: "a proof or a verification failed, or an audit found residual influence",
    UNDECIDED: "an audit has not enough evidence for a verdict, or a proof could compare only a part",
    AFTERWARDS: "done, but something after it failed: the answer could not be written, an interruption came too late, "
    "or old bytes could not be erased yet (finished when the workspace is next opened)",
    INTERRUPTED: "interrupted with Ctrl-C",
}


class Stop(Exception):  # noqa: N818 (an answer, not an error)
    """The command ends here: with this exit code, and a line on stderr if there is something to say."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code
