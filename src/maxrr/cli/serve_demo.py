"""`maxrr serve --demo`: a workspace of handwritten digits, requests of several kinds, and three tokens."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli import show

if TYPE_CHECKING:
    from maxrr.service.requests import Request

SHOP = "shop"


def demo_workspace(place: Path, port: int) -> Path:
    """Make a workspace that signs, ask its service for something of each kind, and print the tokens."""
    from maxrr.cli.demo import SOURCE, model_of
    from maxrr.data import load
    from maxrr.evidence import make_key
    from maxrr.evidence.signing import ENVIRONMENT
    from maxrr.workspace import Workspace

    key = make_key(place / "key.pem")
    os.environ[ENVIRONMENT] = (place / "key.pem").read_text()  # for the worker, too
    training, test = load("digits")
    training, folder = training.in_order(), place / "ws"
    with show.progress():
        workspace = Workspace.create(
            folder, model_of(training), training, source=SOURCE, test=test, progress=show.report, signing_key=key,
        )  # fmt: skip
    with workspace:
        kinds = {kind: workspace.model.ids_of(kind).tolist() for kind in ("free", "influential", "core")}
    tokens = ask(folder, kinds)
    show.say(f"Three tokens, shown this once, for http://127.0.0.1:{port}:")
    show.facts(list(tokens.items()))
    return folder


def ask(folder: Path, kinds: dict[str, list[int]]) -> dict[str, str]:
    """Ask for free, influential and core records, for one that is not here, and for one that is late; make tokens."""
    from maxrr.service import Settings
    from maxrr.service.api import Service
    from maxrr.service.requests import Asked, today
    from maxrr.service.tokens import AUDITOR, OPERATOR, REQUESTER
    from maxrr.workspace import Workspace

    service = Service.of(Settings(folder, lambda read_only: Workspace.open(folder, read_only=read_only)))

    def submit(ids: list[int], days: int = 30) -> Request:
        return service.requests.submit(Asked({"ids": ids}, "gdpr", today() + timedelta(days=days)), SHOP)[0]

    submit(kinds["free"][:2])
    submit(kinds["influential"][:3])
    submit(kinds["core"][:1], days=-1)
    submit(kinds["core"][1:4], days=5)
    submit([987_654_321])
    service.requests.decide(submit(kinds["free"][2:3]), "cancelled", SHOP, "asked for by mistake")
    made = {REQUESTER: service.tokens.make(SHOP, REQUESTER)}
    made |= {role: service.tokens.make(role, role) for role in (OPERATOR, AUDITOR)}
    service.close()
    return made
