"""The short names in result files, as people read them, with the sizes that a profile really has."""

import re

from lab.parts import Json

DATA = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST", "adult": "Adult", "cifar-10": "CIFAR-10"}
USUAL = "one-vs-rest"
PAPERS = {"small": 10_000, "large": 20_000, "extra": 10_000, "many": 20_000, "some": 2_000}


def readable(name: str, content: Json) -> str:
    """A row or column of a part, as its figure and its table call it.

    >>> readable("top10k+random10k", {})
    'top 10k + 10k random'
    >>> readable("nontop10k", {"setting": {"profile": {"small": 240}}})
    'all but the top 240'
    >>> readable("core20k, MaxRR", {})
    'all 20k of the core, MaxRR'
    >>> readable("10% of the support vectors", {})
    '10 % of the support vectors'
    """
    known = names(profile(content))
    words = ", ".join(known.get(word, word) for word in name.split(", "))
    return re.sub(r"(?<=\d)%", " %", words)


def names(sizes: Json) -> dict[str, str]:
    """The table's columns, and the verification's requests and methods."""
    found = PAPERS | {name: sizes[name] for name in PAPERS if name in sizes}
    small, large, extra, many, some = (short(found[name]) for name in PAPERS)
    return {
        "top10k": f"top {small}",
        "top10k+random10k": f"top {small} + {extra} random",
        "nontop10k": f"all but the top {small}",
        "top20k": f"top {large}",
        "top20k+random10k": f"top {large} + {extra} random",
        "nontop20k": f"all but the top {large}",
        "core20k": f"{'all ' if many == large else ''}{many} of the core",
        "core2k": f"{some} of the core",
        "noncore20k": f"{many} outside the core",
        "noncore2k": f"{some} outside the core",
        "perfect": "perfect retraining",
        "FE+SVM": "FE\u00a0+\u00a0SVM",
    }


def profile(content: Json) -> Json:
    """What the numbers follow from; empty where the file does not say."""
    found: Json = content.get("setting", {}).get("profile", {})
    return found


def short(count: int) -> str:
    """
    >>> short(20_000), short(1_420), short(240)
    ('20k', '1,420', '240')
    """
    return f"{count // 1000}k" if count and count % 1000 == 0 else f"{count:,}"


def heading(content: Json) -> str:
    """What is measured, on which data, and how often.

    >>> heading({"title": "Support vectors", "runs": 100, "setting": {"profile": {"data": "fashion-mnist"}}})
    'Support vectors (Fashion-MNIST, 100 runs)'
    >>> other = {"data": "mnist", "heads": "one-vs-one", "recipe": {"epochs": 11}}
    >>> heading({"title": "Support vectors", "setting": {"profile": other}})
    'Support vectors (MNIST, one-vs-one, 11 epochs)'
    >>> heading({"title": "Support vectors", "setting": {"profile": {**other, "pixels": "raw"}}})
    'Support vectors (MNIST, one-vs-one, 11 epochs, raw pixels)'
    """
    data, pixels = str(profile(content).get("data", "")), profile(content).get("pixels")
    runs = content.get("runs")
    facts = [DATA.get(data, data)] if data else []
    facts += [f"{runs} run{'s' * (runs != 1)}"] if runs else []
    if pixels or profile(content).get("heads", USUAL) != USUAL:  # not as in most results: worth a word
        facts += [profile(content)["heads"], f"{profile(content)['recipe']['epochs']} epochs"]
    facts += [f"{pixels} pixels"] if pixels else []
    return f"{content['title']} ({', '.join(facts)})" if facts else str(content["title"])
