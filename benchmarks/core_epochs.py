"""Two cores after longer trainings, where there is no shell: `maxrr study core-epochs`, with a limit of time.

    python benchmarks/core_epochs.py --profile paper --device cuda --out results --minutes 8

A ranking of ten runs and all networks on its two cores are one piece, of which there are three: about two minutes each
on an H200. What is missing is measured, and the same command goes on from there. The rule is in
`maxrr/paper/core_epochs.py`.
"""

import argparse
import time
from pathlib import Path

from maxrr.paper import PROFILES, Lab
from maxrr.paper.core_epochs import PART, RANKINGS, measure_ranking, summarise
from maxrr.progress import Line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="quick", choices=PROFILES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="no ranking is begun that may end later")
    parser.add_argument("--progress", action="store_true")
    asked = parser.parse_args()
    started, longest = time.perf_counter(), 0.0
    profile = PROFILES[asked.profile]
    lab = Lab.of(
        profile, asked.out / profile.name, seed=asked.seed, device=asked.device,
        progress=Line() if asked.progress else None,
    )  # fmt: skip
    results = lab.results(PART)
    missing = [name for name in RANKINGS if name not in results.read()["pieces"]]
    for done, name in enumerate(missing):
        begun = time.perf_counter()
        if begun - started + 1.2 * longest > 60.0 * asked.minutes:
            print(f"{len(missing) - done} rankings are left: the same command goes on from there", flush=True)
            return
        measure_ranking(lab, results, name)
        longest = max(longest, time.perf_counter() - begun)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
    for sentence in summarise(lab, results)["said"]:
        print(sentence, flush=True)


if __name__ == "__main__":
    main()
