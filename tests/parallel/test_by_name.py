"""Engines by name and by file; and what is said where Ray is missing."""

import sys

import pytest

from maxrr.errors import EngineError
from maxrr.parallel import Processes, Ray
from maxrr.parallel.ray_cluster import check_reachable, engine_from, working_on
from tests.parallel import work


def test_names():
    assert engine_from(None) is None
    assert engine_from("local") is None
    assert engine_from("ray") == Ray()
    assert engine_from("ray://head:10001") == Ray("ray://head:10001")
    assert engine_from(Processes(3)) == Processes(3)


@pytest.mark.parametrize("wrong", ["dask", "Ray", "http://head", "", 7, ["ray"]])
def test_what_is_no_engine(wrong):
    with pytest.raises(ValueError, match="'local', 'ray'"):
        engine_from(wrong)


def test_a_file(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text('address = "ray://head:10001"\ncpus = 2\ngpus = 0.25')
    assert engine_from(path) == engine_from(str(path)) == Ray("ray://head:10001", cpus=2, gpus=0.25)
    path.write_text("cpus = 2")
    assert engine_from(path) == Ray(cpus=2)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("address = 3", "address"),
        ("gpu = 1", "gpu"),
        ('cpus = "two"', "cpus"),
        ("cpus = true", "cpus"),
        ("cpus = 0", "part of a processor"),
        ("= 1", "Invalid"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path, content, why):
    path = tmp_path / "cluster.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=why) as raised:
        engine_from(path)
    assert str(path) in str(raised.value)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"No such file.*none\.toml"):
        engine_from(tmp_path / "none.toml")


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it could not be imported
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'maxrr\[ray\]'"):
        list(engine_from("ray").map(work.scaled, [1], 1))


def test_working_on_this_machine_needs_nothing():
    with working_on("local") as engine:
        assert engine is None


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "127.0.0.1:1"])
def test_an_address_at_which_nobody_listens_is_said_at_once(address):
    with pytest.raises(EngineError, match="Ray cluster answers"):
        check_reachable(address)


@pytest.mark.parametrize("address", ["nonsense", "ray://", "ray://head", "host:port"])
def test_what_is_no_address(address):
    with pytest.raises(EngineError, match="Ray cluster"):
        check_reachable(address)
