"""How often audits find what is left of forgotten records where training starts from public weights.

    python benchmarks/audit_public_weights.py --device cuda --seen seen/ --out benchmarks/audit_public_weights.json

EfficientNet-Lite0 on the first 10,000 records of CIFAR-10 at 96 pixels, fine-tuned on a hash core of a tenth. As in
`audit.py`: two requests, a quarter of the core records and as many others; twenty models for each guarantee, and twenty
to which nothing was done, are audited beside one pool of 64 shadow models; attacks look at features, too. With `--seen`
what attacks look at is kept, so that they can be repeated without the networks. `--data digits` is a look at whether
everything works.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from audit import WITH, WITHOUT, audits, judged, made, read, stored
from lab import public_networks as networks
from lab.heads import Bools, Heads, Scheme
from lab.lab import Features, Lab
from lab.profiles import PROFILES
from lab.public_cases import TUNED, is_small
from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.nets import Recipe, Resized, train_many
from maxrr.nets.naming import suited
from maxrr.nets.public_weights import GivenStart, hash_of_weights, made_with
from maxrr.progress import Line

RECORDS, TESTS, SIDE, SHARE, EPOCHS = 10_000, 2_000, 96, 0.1, 20
PENALTY, SMALL_PENALTY = 0.003, 1.0  # the first as the study chose it


def efficientnet() -> torch.nn.Module:
    """The network of the study, with smaller images."""
    return Resized(networks.body(), SIDE, networks.MEAN, networks.SCALE)


class Tuned(Lab):
    """A lab whose networks start from public weights."""

    def train(
        self, seeds: Sequence[int], records: Dataset, *, without: Sequence[NDArray[Any]] | None = None,
        recipe: Recipe | None = None,
    ) -> Iterator[torch.nn.Module]:  # fmt: skip
        """Fine-tune one network for each seed, with the rates of the study."""
        maker, classes = networks.stand_in if is_small(self) else efficientnet, len(self.training.class_names)
        network = suited(maker, self.training.shape, classes)
        start = GivenStart(network, hash_of_weights(made_with(network, 0)), classes)
        precision = "bfloat16" if self.device.type == "cuda" else "float32"
        recipe = recipe or replace(TUNED, epochs=EPOCHS, precision=precision)
        runs = train_many(start, records, seeds, recipe=recipe, device=self.device, progress=self.progress)
        with closing(runs):
            for run in runs:
                yield run.network

    def fit_heads(
        self, features: Sequence[Features], masks: Sequence[Bools | None], scheme: Scheme | None = None,
        C: float | None = None,
    ) -> Iterator[Heads]:  # fmt: skip
        """Fit the heads of several models, with the study's C."""
        return super().fit_heads(features, masks, scheme, C or (SMALL_PENALTY if is_small(self) else PENALTY))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar-10")
    parser.add_argument("--device")
    parser.add_argument("--seen", type=Path, help="a folder for what attacks look at; what is there is not made again")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found = Lab.of(PROFILES["public-weights"], Path("results"), source=asked.data, device=asked.device, progress=Line())
    lab = Tuned(**{field.name: getattr(found, field.name) for field in fields(found)})
    first, tests = lab.training.ids[:RECORDS], lab.test.ids[:TESTS]
    lab = replace(lab, training=lab.training.select(first), test=lab.test.select(tests))
    core = lab.training.ids[HashCore(0.4 if is_small(lab) else SHARE, key="benchmark").is_core(lab.training.ids)]
    path = None if asked.seen is None else asked.seen / "public.npz"
    if path is not None and path.exists():
        about, seen = made(path), read(path)
    else:
        about, seen = made(None), audits(lab, core, 0)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            stored(seen, path)
    result: dict[str, Any] = {
        "command": f"python benchmarks/audit_public_weights.py --data {asked.data}", "records": len(lab.training),
        "core": len(core), "pixels": SIDE, "made": about,
        "shadow models": {"with the records": WITH, "without": WITHOUT},
        **{request: judged(kinds) for request, kinds in seen.items()},
    }  # fmt: skip
    for request in seen:
        for attack, of_attack in result[request]["attacks"].items():
            said = ", ".join(f"{guarantee} {one['found']}/{one['of']}" for guarantee, one in of_attack.items())
            print(f"{request}, {attack}: {said}", flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
