"""Keys for trees: evenly spread ones, and ones that share long prefixes, which hashes never do."""

from hashlib import sha256

from hypothesis import strategies as st


def spread(number: int) -> bytes:
    return sha256(number.to_bytes(4, "big")).digest()


def flipped(content: bytes, position: int) -> bytes:
    """The same bytes with one bit changed."""
    number = int.from_bytes(content, "big") ^ (1 << position)
    return number.to_bytes(len(content), "big")


SPREAD = st.integers(0, 40).map(spread)
# Those that differ from one of two keys in one or two bits, anywhere: they part at every depth, the last included.
NEAR = st.builds(
    lambda base, one, two: flipped(flipped(spread(base), one), two),
    st.integers(0, 1), st.integers(0, 12) | st.integers(0, 255), st.integers(0, 12) | st.integers(240, 255),
)  # fmt: skip
KEYS = SPREAD | NEAR
VALUES = st.integers(0, 3).map(lambda number: sha256(b"value %d" % number).digest())
