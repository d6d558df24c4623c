"""Sources of data for the tests: IDX files, a server that misbehaves on request, datasets that Hypothesis draws."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxrr.data import Dataset, load
from maxrr.data.known import Known
from maxrr.errors import MissingIds
from tests.cases import THOROUGH

drawn = settings(
    max_examples=40 if THOROUGH else 10,
    deadline=None,  # the machine may be shared
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
"""How Hypothesis runs here: the same cases every time, a quarter of them in `make test`."""


def load_by_rows(path, **columns):
    """Both sides of a source, by its ids, or by row numbers if it has none."""
    try:
        return load(path, **columns)
    except MissingIds:
        return load(path, ids_from="rows", **columns)


def idx_bytes(array):
    """An array of bytes in the IDX format."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def tiny(site, seed=0, name="tiny"):
    """A dataset of 7 and 3 images, and the content of its files."""
    rng = np.random.default_rng(seed)
    files = {}
    for prefix, count in (("train", 7), ("t10k", 3)):
        files[f"{prefix}-images-idx3-ubyte"] = idx_bytes(rng.integers(0, 256, (count, 4, 5), dtype=np.uint8))
        files[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(rng.integers(0, 2, count, dtype=np.uint8))
    sha256 = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    return Known(name, site, ("no", "yes"), sha256), files


class Server:
    """Answers each path with what `answers` holds for it: a function of the request's handler. 404 otherwise."""

    def __init__(self):
        answers = self.answers = {}
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                answers.get(self.path, lambda handler: handler.send_error(404, "Not Found"))(self)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def publish(self, files):
        self.asked.clear()
        for name, content in files.items():
            self.answers[f"/{name}.gz"] = body(gzip.compress(content))

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def body(content, promised=None):
    """An answer with this content, and perhaps another length in its header."""

    def answer(handler):
        handler.send_response(200)
        if promised != "nothing":
            handler.send_header("Content-Length", str(len(content) if promised is None else promised))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


FEATURES = st.sampled_from([np.uint8, np.float32, np.float64])


@st.composite
def datasets(draw, min_size=1, max_size=12):
    count = draw(st.integers(min_size, max_size))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=3))
    dtype = draw(FEATURES)
    elements = {"allow_nan": False, "allow_infinity": False} if dtype is not np.uint8 else None
    inputs = draw(hnp.arrays(dtype, (count, *shape), elements=elements))
    class_names = tuple(draw(st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True)))
    labels = draw(st.lists(st.integers(0, len(class_names) - 1), min_size=count, max_size=count))
    ids = draw(st.lists(draw(IDENTIFIERS), min_size=count, max_size=count, unique=True))
    subjects = draw(st.none() | st.lists(draw(IDENTIFIERS), min_size=count, max_size=count))
    return Dataset(
        inputs, np.array(labels, dtype=np.int64), class_names, identifiers(ids), subjects and identifiers(subjects)
    )


# NumPy drops zero characters at the end of a string.
IDENTIFIERS = st.sampled_from(
    [st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_characters="\0"), max_size=3)]
)


def identifiers(values):
    return np.array(values, dtype=np.int64 if isinstance(values[0], int) else np.str_)
