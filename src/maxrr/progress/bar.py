"""Progress as a bar: in a notebook drawn in its place below the cell, elsewhere a line in the terminal."""

import math
import sys
import time
from html import escape
from typing import Any

from maxrr.progress.line import Line, describe


class Bar:
    """Progress for notebooks and terminals alike: `model.fit(records, progress=Bar())`.

    In a notebook each kind of work has a bar below the cell, which is drawn over ten times a second. Where there is no
    notebook it is a `Line`.

    Examples
    --------
    >>> from maxrr.progress import Bar
    >>> bar = Bar()
    >>> bar("training", 1, 2, loss=0.25)  # what long work does
    """

    def __init__(self) -> None:
        self.display = notebook_display()
        self.line = None if self.display else Line()
        self.bars: dict[str, _Drawn] = {}

    def __call__(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Show how far the work is, as `Progress.__call__` takes it, if it is time to draw it again."""
        if self.line is not None:
            self.line(what, done, total, **numbers)
            return
        drawn = self.bars.setdefault(what, _Drawn(self.display, done))
        drawn.show(what, done, total, numbers)
        if done >= total:
            del self.bars[what]  # the same work may come again, below

    def close(self) -> None:
        """Leave the bars as they are, and begin new ones with what comes next."""
        self.bars.clear()
        if self.line is not None:
            self.line.close()


class _Drawn:
    """One bar in a notebook."""

    def __init__(self, display: Any, first: int) -> None:
        self.display = display
        self.handle: Any = None
        self.first = first
        self.begun = time.monotonic()
        self.shown = -math.inf

    def show(self, what: str, done: int, total: int, numbers: dict[str, float]) -> None:
        now = time.monotonic()
        if done < total and now - self.shown < 0.1:
            return
        self.shown = now
        text = describe(what, done, total, numbers, now - self.begun, self.first)
        drawn = {"text/html": html(done, total, text), "text/plain": text}
        if self.handle is None:
            self.handle = self.display(drawn, raw=True, display_id=True)
        else:
            self.handle.update(drawn, raw=True)


def html(done: int, total: int, text: str) -> str:
    """A bar and its words.

    >>> "width:25%" in html(1, 4, "training: 1/4")
    True
    """
    share = 100 * done // total if total else 100
    return (
        '<div style="display:flex;align-items:center;gap:10px;font-size:13px">'
        '<div style="flex:none;width:16em;height:9px;background:rgba(127,127,127,0.25)">'
        f'<div style="width:{share}%;height:9px;background:#1f6feb"></div></div><span>{escape(text)}</span></div>'
    )


def notebook_display() -> Any:
    """IPython's `display` where this runs in a notebook's kernel; None in a terminal or a script."""
    loaded = sys.modules.get("IPython")
    shell = loaded.get_ipython() if loaded is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    return sys.modules["IPython.display"].display
