"""Who stands for the members when 2,000 core records are verified: the paper does not say, and its verdicts differ.

It takes all retained records as members for requests of core records, and leaves out the core for others, 'since they
are not representative'. By the same reason it might have taken the core alone here.
"""

from maxrr.experiments import published
from maxrr.experiments.agreement import READINGS, at_least, ends
from maxrr.experiments.confidence import USUAL
from maxrr.experiments.lab import Lab
from maxrr.experiments.results import Json
from maxrr.experiments.verification import Scenario, answered, scenario, tallied

REQUEST = "core2k"


def members(lab: Lab) -> Json:
    """The agreement of verdicts for both choices."""
    results = lab.results("members")
    found = results.piece(REQUEST, lambda: measured(lab))
    comparable = lab.comparable and lab.profile.few == published.published()["agreement"]["runs"]
    paper = published.agreement(REQUEST) if comparable else {}
    cells = {
        name: ends({reading: at_least(tally[reading]) for reading in READINGS}, paper) for name, tally in found.items()
    }
    return results.finish({
        "part": "members", "title": "Who stands for the members", "runs": lab.profile.few, "cells": cells,
    })  # fmt: skip


def measured(lab: Lab) -> Json:
    """The same models, attacked with thresholds of both kinds."""
    seeds, core = lab.seeds(lab.profile.few), lab.top(lab.profile.large)
    request = scenario(lab, REQUEST)
    models = answered(lab, seeds, request)
    among_core = Scenario(REQUEST, request.forgotten, request.members & lab.mask(core))
    return {
        "all retained records": tallied(lab, models, request, USUAL),
        "retained core records": tallied(lab, models, among_core, USUAL),
    }
