"""What a user can put right is a line on stderr; a fault of ours is a traceback."""

import subprocess
import sys
import warnings

import pytest

from maxrr.cli.run import REFUSED, REFUTED, Stop, reported


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (
            ValueError("record 7 has no label"),
            1,
            "Error: record 7 has no label [wrong-value]\n",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "cats.npz"),
            1,
            "Error: cats.npz: No such file or directory [file-missing]\n",
        ),
        (OSError("the site does not answer"), 1, "Error: the site does not answer [disk]\n"),
        (ValueError(), 1, "Error: ValueError() [wrong-value]\n"),
        (
            MemoryError("1 TiB"),
            1,
            "Error: there is not enough memory: 1 TiB [no-memory]\n",
        ),
        (ValueError("no file \x1b[31m"), 1, "Error: no file \\x1b[31m [wrong-value]\n"),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
        (KeyboardInterrupt("nothing was changed"), 130, "Error: interrupted: nothing was changed\n"),
        (Stop(REFUSED, "no"), 3, "Error: no [refused]\n"),
        (Stop(REFUTED), 4, ""),
        (SystemExit(3), 3, ""),
    ],
)
def test_a_line_and_an_exit_code(
    error: BaseException, code: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_, reported():
        raise error
    assert exit_.value.code == code
    assert capsys.readouterr() == ("", shown)


def test_debug_lets_it_through() -> None:
    with pytest.raises(ValueError, match="why"), reported(debug=True):
        raise ValueError("why")


def test_a_warning_is_a_line(capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    with reported():
        warnings.warn("two records are alike", stacklevel=1)
    assert capsys.readouterr() == ("", "Warning: two records are alike\n")
    assert not recwarn.list


def test_a_fault_is_not_dressed_up() -> None:
    with pytest.raises(TypeError, match="ours"), reported():
        raise TypeError("ours")


def test_a_reader_that_has_read_enough() -> None:
    code = "from maxrr.cli.run import reported\nwith reported(): print('word\\n' * 100_000)"
    piped = subprocess.run(f'"{sys.executable}" -c "{code}" | head -n 1', shell=True, capture_output=True, text=True)
    assert (piped.stdout, piped.stderr) == ("word\n", "")
