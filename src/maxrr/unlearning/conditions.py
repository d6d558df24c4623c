"""What exactness is conditional on: everything that shaped the model and was not trained here from the records."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maxrr.plain_text import count, first_few

if TYPE_CHECKING:  # a status is told without PyTorch
    from maxrr.core.choice import Choice
    from maxrr.unlearning.blueprint import Blueprint
    from maxrr.unlearning.facts import Facts

DECIDE_EACH = ("HashCore", "FullCore")  # of `maxrr.core`: whether a record is core does not depend on the others

START = "start"  # where a recipe names the given weights that training starts from

OWN_CHOICE = "the caller's own code chose the core, and the caller vouches that "

ADOPTED = (
    "the extractor was trained elsewhere: that it saw the core records alone is the word of whoever gave it, and a "
    "replay checks it by training again"
)


def conditions(
    choice: "Choice | Facts", blueprint: "Blueprint | Facts", left_in_extractor: int, technique: bool,
    adopted: bool = False, waiting: int = 0,
) -> list[str]:  # fmt: skip
    """List the conditions that exactness rests on, one sentence each; none where it is unconditional.

    Facts stand for choice and blueprint where the status of a workspace is told without making a model.
    """
    found = [] if choice.unconditional else [choice.depended_on]
    if choice.unconditional and not blueprint.decides_each:
        found.append(OWN_CHOICE + choice.depended_on)
    if blueprint.given:
        found.append(
            f"the weights {first_few(list(blueprint.given))} of the network were given, and neither drawn from the "
            "seed nor trained here from the start: on the word of whoever gave them that no record had a part in them"
        )
    if blueprint.drafted:
        found.append(
            f"the encoding of {count(blueprint.drafted, 'column')} was drafted from the table, which had the records "
            "that are forgotten: its constants stay, and without the records others might have been drafted"
        )
    recipe = blueprint.recipe_facts
    if START in recipe:
        found.append(given_start(recipe[START]))
    if adopted:
        found.append(ADOPTED)
    elif "function" in recipe:
        found.append(by_own_function(recipe))
    elif (twice := recipe.get("run_twice", "same")) != "same":
        found.append(f"training gives other bytes each time on this device (run twice on a part of the core: {twice})")
    if technique:
        found.append("the extractor is the work of the caller's technique: what it keeps is for an audit to say")
    if left_in_extractor:
        records = count(left_in_extractor, "forgotten core record")
        found.append(f"the extractor was trained on {records}, and keeps what it learned")
    if waiting:
        records = count(waiting, "added record waits", "added records wait")
        found.append(f"the core is that of the last fit: {records} for the next one, to be core by the rule")
    return found


def given_start(weights: Mapping[str, str]) -> str:
    """The condition that training started from given weights.

    >>> given_start({"name": "EfficientNet-Lite0, ImageNet", "sha256": "0a"})
    'given weights: EfficientNet-Lite0, ImageNet, sha256 0a; what they learned from is not known here'
    """
    named = f"{weights['name']}, " if weights["name"] else ""
    return f"given weights: {named}sha256 {weights['sha256']}; what they learned from is not known here"


def by_own_function(recipe: Mapping[str, Any]) -> str:
    """The condition that code of the operator's own trained the extractor, and what was seen of that code.

    >>> by_own_function({"function": "my_training:train", "run_twice": "same"})[:68]
    "the extractor was trained by my_training:train, the operator's own c"
    """
    twice = recipe.get("run_twice", "same")
    return (
        f"the extractor was trained by {recipe['function']}, the operator's own code: that it used nothing but the "
        "records it was given is the operator's word"
        + ("" if twice == "same" else f" (run twice on a part of the core: {twice})")
    )
