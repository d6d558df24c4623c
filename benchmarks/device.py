"""Requests to models on a graphics processor, beside a fit in the same run: seconds, bytes, and where seconds go.

    python benchmarks/device.py --device cuda --part classes wide flat pairs --out benchmarks/device.json

Every part is one problem. All is done once before, on few samples, so that libraries and kernels are there. Times are
medians over the repeats, of which the first of each kind counts too; then each is done once more with clocks inside
(`stages.py`), which wait for the device and so make it slower. Bytes of the weights are hashed: two versions of the
code must agree on them. Only PyTorch, NumPy, SciPy and scikit-learn are needed, and for pairs also what `lab` imports.
"""

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import stages
from circumstances import circumstances
from features import Labels
from maxrr import LinearSVM
from maxrr.svm import FlatHeadWarning, arrays, heads, influence, validation
from synthetic import embeddings

Made = tuple[torch.Tensor, Labels]
SMALL = 100  # times fewer samples, with --small
NOISE = 1.0  # of networks' features, so that some thirty in a hundred are influential


@dataclass(frozen=True)
class Part:
    """A problem, and what is asked of its model: how many samples to forget, how often."""

    make: Callable[[int, str], Made]
    samples: int
    C: float = 1.0
    fits: int = 1
    forget: tuple[tuple[int, int], ...] = ()
    pairs: bool = False  # a head for each pair of classes, of which there are only fits
    clocked: bool = False  # takes so long that clocks are inside from the start


def network_features(samples: int, device: str) -> Made:
    """Like those of a network that was tuned to ten classes: rectified, one mean a class, noise of few directions."""
    rng, generator = np.random.default_rng(5), torch.Generator(device).manual_seed(5)
    width, classes = 1280, 10
    y = rng.integers(classes, size=samples)
    spectrum = torch.arange(1, width + 1, device=device, dtype=torch.float32) ** -0.5
    mixing = torch.randn(width, width, generator=generator, device=device) * spectrum[:, None]
    means = torch.randn(classes, width, generator=generator, device=device)
    noise = torch.randn(samples, width, generator=generator, device=device) @ mixing
    X = (means[torch.as_tensor(y, device=device)] + NOISE * noise / spectrum.norm() - 0.5).relu_()
    X *= 4.0 / X.norm(dim=1).mean()
    anew = rng.random(samples) < 0.03
    y[anew] = rng.integers(classes, size=int(anew.sum()))
    return X, y


def useless_features(samples: int, device: str) -> Made:
    """Noise, whatever the class: the head of a class that is rarer than the others has no weights."""
    generator = torch.Generator(device).manual_seed(6)
    X = torch.randn(samples, 512, generator=generator, device=device) / 512**0.5
    return X, (np.random.default_rng(6).random(samples) < 0.1).astype(np.int64)


def blurred_features(samples: int, device: str) -> Made:
    """Rectified random projections, of which single pairs of classes are hard to tell apart."""
    rough, y = embeddings(samples, 300, 10, 0.02, device)
    generator = torch.Generator(device).manual_seed(7)
    projection = torch.randn(300, 84, generator=generator, device=device)
    return (rough @ projection / 17.0).relu_(), y


PARTS = {
    "classes": Part(
        lambda count, device: embeddings(count, 384, 100, 0.05, device), 200_000,
        forget=((1, 5), (30, 1), (1000, 1)),
    ),
    "wide": Part(network_features, 50_000, C=0.1, forget=((1, 5), (30, 1), (1000, 1))),
    "flat": Part(useless_features, 50_000, forget=((1, 1),), clocked=True),
    "pairs": Part(blurred_features, 60_000, fits=2, pairs=True),
}  # fmt: skip


def measure(part: Part, device: str, count: int, profile: bool) -> Iterator[dict[str, Any]]:
    """What was found, each time that there is more."""
    found: dict[str, Any] = {"samples": count}
    X, y = part.make(count, device)
    found["shape"] = list(X.shape)

    def work(name: str, works: list[Callable[[], Any]], hashed: Callable[[Any], bytes]) -> Any:
        seconds, digest, notes = [], hashlib.sha256(), dict[str, Any]()
        for each in works:
            finish(device)
            begin = time.perf_counter()
            with stages.watched() if profile and part.clocked else nullcontext(notes) as notes:
                done = each()
                finish(device)
            seconds.append(time.perf_counter() - begin)
            digest.update(hashed(done))
        found[name] = {
            "seconds": median(seconds), "all_seconds": [round(one, 4) for one in seconds],
            "bytes": digest.hexdigest()[:16],
        }  # fmt: skip
        if name != "fit":
            found[name]["of_a_fit"] = found[name]["seconds"] / found["fit"]["seconds"]
            found[name]["cold_solves"] = done._fitted.solution.work.cold_solves
        if profile and not part.clocked:
            with stages.watched() as notes:
                works[-1]()
        found[name]["stages"] = notes
        return done

    if part.pairs:
        from lab.heads import solve_pairs

        def fit() -> Any:
            return next(iter(solve_pairs([X], y, [None], None, part.C, None)))

        work("fit", [fit] * part.fits, lambda heads: bytes(heads.weights.tobytes() + heads.biases.tobytes()))
        yield found
        return

    def weights(model: LinearSVM) -> bytes:
        return bytes(model.coef_.tobytes() + model.intercept_.tobytes())

    model = work("fit", [lambda: LinearSVM(part.C, copy_X=False).fit(X, y)] * part.fits, weights)
    found["influential"] = len(model.support_)
    found["on_margin"] = [head.on_margin for head in model.certificate_][:10]
    found["decided"] = all(head.decided for head in model.certificate_)
    yield found
    rng = np.random.default_rng(1)
    for most, repeats in part.forget:
        draws = [rng.choice(model.support_, min(most, len(model.support_) // 2), replace=False) for _ in range(repeats)]
        work(f"forget {most:,}", [lambda rows=rows: model._without(rows) for rows in draws], weights)
        yield found


def finish(device: str) -> None:
    """Wait until the device has done what it was asked to do."""
    if device != "cpu":
        torch.cuda.synchronize()


def take_the_path_of_devices() -> None:
    """Let tensors in main memory count as those on a graphics processor do, to try all of this."""
    for module in (arrays, validation, heads, influence):
        module.on_accelerator = arrays.is_torch  # type: ignore[attr-defined]


def warm_up(device: str) -> None:
    """Libraries and kernels are there before anything is measured."""
    X, y = embeddings(3000, 40, 4, 0.05, device)
    model = LinearSVM().fit(X, y)
    model._without(model.support_[:30])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--small", action="store_true", help="with a hundredth of the samples")
    parser.add_argument("--no-stages", action="store_true", help="times alone")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", FlatHeadWarning)
    if asked.device == "cpu":
        take_the_path_of_devices()
    warm_up(asked.device)
    for name in asked.part:
        part = PARTS[name]
        begin = time.perf_counter()
        for found in measure(part, asked.device, part.samples // (SMALL if asked.small else 1), not asked.no_stages):
            found |= circumstances() | {"whole_part_seconds": time.perf_counter() - begin}
            if asked.device != "cpu":
                found["device"] = torch.cuda.get_device_name()
            known = json.loads(asked.out.read_text("utf-8")) if asked.out.exists() else {}
            asked.out.write_text(json.dumps(known | {name: found}, indent=1, ensure_ascii=False) + "\n", "utf-8")
        said = [f"{key} {each['seconds']:.3f} s" for key, each in found.items() if "seconds" in str(each)[:12]]
        print(f"{name} {found['shape']}: {', '.join(said)}; whole part {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
