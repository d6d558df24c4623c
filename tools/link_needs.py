"""Link what a package that is installed in another environment needs, and nothing else, from this one into that."""

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement


def needs(package: Distribution) -> list[str]:
    """The packages that pip would install with one."""
    said = map(Requirement, package.requires or ())
    return [each.name for each in said if each.marker is None or each.marker.evaluate({"extra": ""})]


def with_what_they_need(names: list[str]) -> Iterator[Distribution]:
    """These packages as they are installed here, and all that they need."""
    left, seen = list(names), set[str]()
    while left:
        package = distribution(left.pop())
        if package.name not in seen:
            seen.add(package.name)
            left += needs(package)
            yield package


if __name__ == "__main__":
    name, there = sys.argv[1], Path(sys.argv[2])
    (given,) = (each for each in distributions(path=[str(there)]) if each.name == name)
    for package in with_what_they_need(needs(given)):
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (there / top).exists():  # as folders of several packages are
                (there / top).symlink_to(Path(str(package.locate_file(top))).resolve())
