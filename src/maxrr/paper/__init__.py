"""The paper's table and figures beside its own numbers, and the questions it leaves."""

import typing

from maxrr import lazily

__all__ = ["PARTS", "PROFILES", "STUDIES", "Lab", "Profile", "cell_text", "draw", "reproduction_page"]

if typing.TYPE_CHECKING:
    from maxrr.paper.cells import cell_text
    from maxrr.paper.figures import draw
    from maxrr.paper.lab import Lab
    from maxrr.paper.page import reproduction_page
    from maxrr.paper.parts import PARTS, STUDIES
    from maxrr.paper.profiles import PROFILES, Profile
else:  # to draw stored results again needs no PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "cells": ("cell_text",),
        "figures": ("draw",),
        "lab": ("Lab",),
        "page": ("reproduction_page",),
        "parts": ("PARTS", "STUDIES"),
        "profiles": ("PROFILES", "Profile"),
    })  # fmt: skip
