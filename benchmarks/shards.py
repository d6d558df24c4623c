"""The study of cores in shards where there is no shell: `maxrr study shards`, with a limit of time.

    python benchmarks/shards.py --profile paper --device cuda --out results --minutes 8
    python benchmarks/shards.py --profile paper --device cpu --out results --seconds

The first measures what is missing, the most important first, and ends before the time is over; the same command goes on
from there. The second adds the seconds of this machine, some minutes on two cores. The ranking is that of
`OUT/PROFILE/ranking-fashion-mnist.npz`, and is measured where there is none.
"""

import argparse
import time
from pathlib import Path

from maxrr.paper import PROFILES, Lab
from maxrr.paper.shards import PART, cases, measure_case, measure_seconds, summarise
from maxrr.progress import Line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="quick", choices=PROFILES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="no case is begun that may end later")
    parser.add_argument("--seconds", action="store_true", help="measure nothing but the seconds of this machine")
    parser.add_argument("--progress", action="store_true")
    asked = parser.parse_args()
    started, longest = time.perf_counter(), 0.0
    profile = PROFILES[asked.profile]
    lab = Lab.of(
        profile, asked.out / profile.name, seed=asked.seed, device=asked.device,
        progress=Line() if asked.progress else None,
    )  # fmt: skip
    results = lab.results(PART)
    missing = [case for case in cases(lab.profile) if case.name not in results.read()["pieces"]]
    for done, case in enumerate([] if asked.seconds else missing, 1):
        begun = time.perf_counter()
        if begun - started + 1.5 * longest > 60.0 * asked.minutes:
            print(f"{len(missing) - done + 1} cases are left: the same command goes on from there", flush=True)
            break
        if case.width < 1.0:  # the rest may have to wait
            measure_seconds(lab, results)
            summarise(lab, results)
        found = measure_case(lab, results, case)
        took = time.perf_counter() - begun
        longest = max(longest, took)
        print(
            f"{done}/{len(missing)} {case.name}: {sum(found['accuracy']) / len(found['accuracy']):.4f}, vote "
            f"{sum(found['vote']) / len(found['vote']):.4f}; {took:.1f} s: {found['seconds']}", flush=True,
        )  # fmt: skip
    measure_seconds(lab, results)
    summarise(lab, results)
    print(f"{results.path}, after {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
