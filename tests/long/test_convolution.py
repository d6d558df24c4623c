"""Our CUDA kernels compute what PyTorch computes; here Triton's interpreter runs them on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton is offered for Linux only")


@pytest.fixture(scope="module")
def measured():
    """What `interpreted.py` says, in a process where Triton interprets."""
    program = Path(__file__).with_name("interpreted.py")
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", ["kernels", "stacks", "shared"])
def test_equal_to_pytorch_in_float64(measured, part):
    """Output and all gradients; float32 sums of some hundred products are within 1e-5 of what they should be."""
    assert measured[part]
    assert {case["case"]: case["difference"] for case in measured[part] if not case["difference"] < 1e-5} == {}


def test_the_same_bytes_twice(measured):
    assert all(case["repeats"] for case in measured["kernels"])


def test_what_the_kernels_do_not_cover_goes_on_to_pytorch(measured):
    for case in (*measured["stacks"], *measured["shared"]):
        assert case["used"] == case["expected"], case["case"]
