"""A bar in a notebook, a line elsewhere."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from maxrr.progress import Bar


class Kernel:
    """What `Bar` sees of IPython in a notebook, and what it was given to display."""

    def __init__(self, patch, kernel=True):
        self.drawn = []
        shell = SimpleNamespace(kernel=object()) if kernel else SimpleNamespace()
        for name, names in (
            ("IPython", {"get_ipython": lambda: shell}),
            ("IPython.display", {"display": self.display}),
        ):
            module = ModuleType(name)
            vars(module).update(names)
            patch.setitem(sys.modules, name, module)

    def display(self, data, *, raw, display_id):
        self.drawn.append([data])
        return SimpleNamespace(update=lambda data, raw: self.drawn[-1].append(data))


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


def test_each_kind_of_work_has_a_bar_that_is_drawn_over(kernel):
    bar = Bar()
    for done in range(5):
        bar("training", done, 4, loss=0.5)
    bar("embedding", 10, 10)
    training, embedding = kernel.drawn
    assert [len(training), len(embedding)] == [2, 1]  # ten times a second at most: the first and the last
    assert "width:0%" in training[0]["text/html"]
    assert "width:100%" in training[-1]["text/html"]
    assert training[-1]["text/plain"].startswith("training: 4/4 (100 %), loss 0.5")


def test_the_same_work_again_has_another_bar(kernel):
    bar = Bar()
    bar("training", 1, 1)
    bar("training", 1, 1)
    assert len(kernel.drawn) == 2


def test_words_cannot_draw(kernel):
    Bar()("<b>training", 1, 1)
    assert "&lt;b&gt;training" in kernel.drawn[0][0]["text/html"]


@pytest.mark.parametrize("there", ["a terminal's IPython", "no IPython"])
def test_elsewhere_it_is_a_line(there, monkeypatch, capsys):
    if there == "no IPython":
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
    else:
        Kernel(monkeypatch, kernel=False)
    bar = Bar()
    bar("training", 2, 2)
    bar.close()
    assert capsys.readouterr().err.startswith("training: 2/2 (100 %)")
