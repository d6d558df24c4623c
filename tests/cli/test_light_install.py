"""Whoever only checks what they were given installs no PyTorch: the packages that docs and page name are enough."""

import html
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.evidence import Dossier
from maxrr.report.dossier import dossier_page
from maxrr.unlearning.statements import HandedReceipt
from tests.evidence.forgeries import KEY, TRUE
from tests.evidence.logs import log_of
from tests.plain_receipts import receipt

EVIDENCE = Path(__file__).parents[2] / "docs" / "specifications" / "evidence.md"
CODE = """
import sys
allowed = set(sys.argv.pop(1).split(","))

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from maxrr.cli import app
app()
"""


def named_packages() -> list[str]:
    """The packages in the second of the two lines."""
    (line,) = re.findall(r"^pip install --no-deps maxrr\npip install (.+)$", EVIDENCE.read_text("utf-8"), re.MULTILINE)
    return [word.strip('"') for word in line.split()]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def with_what_they_need(packages: list[str]) -> set[str]:
    """These packages, and those that pip installs with them."""
    found: set[str] = set()
    left = {name_of(each) for each in packages}
    while left:
        found |= left
        needs = [need for name in left for need in importlib.metadata.requires(name) or () if "extra ==" not in need]
        there = {each.metadata["Name"].lower() for each in importlib.metadata.distributions()}
        left = ({name_of(need) for need in needs} & there) - found
    return found


def run(packages: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command where only these packages can be imported."""
    installed = with_what_they_need(packages)
    modules = {
        module
        for module, homes in importlib.metadata.packages_distributions().items()
        if any(home.lower() in installed for home in homes)
    }
    allowed = ",".join({"maxrr", *modules})
    return subprocess.run([sys.executable, "-c", CODE, allowed, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Path(tmp_path / "operator.pub").write_bytes(KEY.public.pem)
    (tmp_path / "alice.html").write_bytes(dossier_page(Dossier.from_object(TRUE)).encode())
    return tmp_path / "alice.html"


def keys_for(page: Path, name: str) -> list[object]:
    """The operator's keys, for what is signed."""
    return [] if name == "receipt.json" else ["--key", page.with_name("operator.pub")]


def test_the_named_packages_are_enough(page: Path) -> None:
    packages = named_packages()
    done = run(packages, "verify", page, "--key", page.with_name("operator.pub"))
    assert (done.returncode, done.stderr) == (0, "")
    log_of(page.with_name("log"), 3, key=KEY)
    page.with_name("receipt.json").write_text(receipt().to_json(), encoding="utf-8")
    page.with_name("signed.json").write_bytes(HandedReceipt.sign(receipt(), KEY).to_bytes())
    for name in ("log", "receipt.json", "signed.json"):
        done = run(packages, "verify", page.with_name(name), *keys_for(page, name))
        assert (done.returncode, done.stderr) == (0, "")


def test_none_of_them_is_named_for_nothing(page: Path) -> None:
    packages = named_packages()
    for package in packages:
        others = [each for each in packages if each != package]
        assert run(others, "verify", page, "--key", page.with_name("operator.pub")).returncode != 0


def test_the_page_says_the_same(page: Path) -> None:
    line = next(line for line in EVIDENCE.read_text("utf-8").splitlines() if line.startswith("pip install crypto"))
    assert f"pip install --no-deps maxrr\n{line}\nmaxrr verify" in html.unescape(page.read_text("utf-8"))


def test_versions_are_those_that_the_library_takes() -> None:
    taken = {name_of(each): each for each in importlib.metadata.requires("maxrr") or ()}
    for package in named_packages():
        assert package.removeprefix(name_of(package)) in taken[name_of(package)]


def test_other_commands_say_what_is_missing(page: Path) -> None:
    done = run(named_packages(), "fit", "digits", "--out", page.with_name("ws"))
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert done.stderr.strip().endswith("[not-installed]")
