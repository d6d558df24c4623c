"""The smallest reproduction from start to end, every part once."""

from tests.lab.test_commands import check_smoke


def test_smoke_with_nothing_but_pytorch_numpy_scipy_and_scikit_learn(tmp_path):
    check_smoke(tmp_path)
