"""Who stands for the members when 2,000 core records are verified: the paper does not say, and its verdicts differ.

It takes all retained records as members for requests of core records, and leaves out the core for others, 'since they
are not representative'. By the same reason it might have taken the core alone here; or it left out the core here, too,
as happens by itself when the whole core is forgotten.
"""

from lab import published
from lab.agreement import READINGS, at_least, ends
from lab.confidence import USUAL
from lab.lab import Lab
from lab.results import Json
from lab.verification import Scenario, answer, scenario, tally_claims

REQUEST = "core2k"


def measure(lab: Lab) -> Json:
    """The agreement of verdicts for each choice."""
    results = lab.results("members")
    found = results.piece(REQUEST, lambda: attack_with_each(lab))
    comparable = lab.comparable and lab.profile.few == published.published()["agreement"]["runs"]
    paper = published.agreement(REQUEST) if comparable else {}
    cells = {
        name: ends({reading: at_least(tally[reading]) for reading in READINGS}, paper) for name, tally in found.items()
    }
    return results.finish({
        "part": "members", "title": "Who stands for the members", "runs": lab.profile.few, "cells": cells,
    })  # fmt: skip


def attack_with_each(lab: Lab) -> Json:
    """The same models, attacked with thresholds of each kind."""
    request, core = scenario(lab, REQUEST), lab.mask(lab.top(lab.profile.large))
    models = answer(lab, lab.seeds(lab.profile.few), request)
    chosen = {
        "all retained records": request.members,
        "retained core records": request.members & core,
        "records outside the core": request.members & ~core,
    }
    return {
        name: tally_claims(lab, models, Scenario(REQUEST, request.forgotten, members), USUAL)
        for name, members in chosen.items()
    }
