import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.shell import Shell
from tests.small_networks import here, solved_here  # noqa: F401

EPOCHS = 20  # with fewer, every record of the digits is influential


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns and no colours, whatever the terminal or CI that runs the tests asks for."""
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def shell() -> Shell:
    """The command line in this process."""
    return Shell()


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "core.key"
    path.write_text("house\n")
    return path


@pytest.fixture(scope="session")
def fitted_digits(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Path:
    """A workspace with records of every kind, which nobody may change."""
    folder = tmp_path_factory.mktemp("digits") / "ws"
    options = ("--core", f"hash:0.4:{key_file}", "--epochs", EPOCHS)
    Shell()("fit", "digits", "--out", folder, *options)
    return folder


@pytest.fixture
def digits(fitted_digits: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(fitted_digits, tmp_path / "ws"))


@pytest.fixture(scope="session")
def visits_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with names of its own, whose records and subjects are strings."""
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    lines = [f"v{row},p{row // 3},{'ill' if row % 4 else 'well'},{row % 4 + row / 100},{row % 7}" for row in range(60)]
    path.write_text("\n".join(["visit,person,state,age,weight", *lines]))
    Shell()("data", "prepare", path, "--label", "state", "--id", "visit", "--subject", "person", "--split-by", "id")
    return path


@pytest.fixture(scope="session")
def fitted_visits(tmp_path_factory: pytest.TempPathFactory, visits_csv: Path) -> Path:
    folder = tmp_path_factory.mktemp("visits") / "ws"
    Shell()("fit", visits_csv, "--core", "full", "--epochs", 2, "--out", folder)
    return folder


@pytest.fixture
def visits(fitted_visits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted_visits, tmp_path / "visits"))


@pytest.fixture(scope="session")
def fitted_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of embeddings, beside their file and its table."""
    folder, topics = tmp_path_factory.mktemp("features"), np.arange(200) % 2
    inputs = np.random.default_rng(0).normal(size=(200, 6)) + 1.5 * topics[:, None]
    np.save(folder / "x.npy", inputs.astype(np.float32))
    lines = [f"t{number},{'ab'[topic]},{number // 4}" for number, topic in enumerate(topics)]
    (folder / "people.csv").write_text("\n".join(["id,topic,author", *lines]))
    source = folder / "x.npy"
    Shell()("data", "prepare", source, "--meta", folder / "people.csv", "--label", "topic", "--subject", "author")
    Shell()("fit", source, "--out", folder / "ws")
    return folder / "ws"


@pytest.fixture
def features(fitted_features: Path, tmp_path: Path) -> Path:
    """A copy of it, with the file and the table."""
    return Path(shutil.copytree(fitted_features.parent, tmp_path / "features")) / "ws"
