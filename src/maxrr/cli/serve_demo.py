"""`maxrr serve --demo`: a workspace of handwritten digits, requests of several kinds, and three tokens."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from maxrr.cli import show

SHOP = "shop"


def demo_workspace(place: Path, port: int) -> Path:
    """Make a workspace that signs, ask its service for something of each kind, and print what is needed to look on."""
    from maxrr.cli.demo import SOURCE, model_of
    from maxrr.data import load
    from maxrr.evidence import make_key
    from maxrr.evidence.signing import ENVIRONMENT
    from maxrr.workspace import Workspace

    key, folder = make_key(place / "key.pem"), place / "ws"
    os.environ[ENVIRONMENT] = (place / "key.pem").read_text()  # for the worker, too
    training, test = load("digits")
    with show.progress():
        workspace = Workspace.create(
            folder, model_of(training), training.in_order(), source=SOURCE, test=test, progress=show.report,
            signing_key=key,
        )  # fmt: skip
    with workspace:
        kinds = {kind: workspace.model.ids_of(kind).tolist() for kind in ("free", "influential", "core")}
    tokens = ask(folder, kinds)
    show.say(f"Three tokens, shown this once, for http://127.0.0.1:{port}:")
    show.facts(list(tokens.items()))
    show.say("Ids of records to ask for, by how much the model learned from them (no record says whom it is about):")
    show.facts([(kind, ", ".join(map(str, ids[10:15]))) for kind, ids in kinds.items()])
    print(f"The public key, which the page Check asks for:\n{key.public.pem.decode()}")
    return folder


def ask(folder: Path, kinds: dict[str, list[int]]) -> dict[str, str]:
    """Ask for free, influential and core records, for one that is not here, and for one that is late; make tokens."""
    from maxrr.service.api import Service
    from maxrr.service.requests import Asked, today
    from maxrr.service.settings import Settings
    from maxrr.service.tokens import AUDITOR, OPERATOR, REQUESTER
    from maxrr.workspace import Workspace

    service = Service.of(Settings(folder, lambda read_only: Workspace.open(folder, read_only=read_only)))
    free, influential, core = kinds.values()
    for ids, days in (
        (free[:2], 30), (influential[:3], 30), (core[:1], -1), (core[1:4], 5), ([987_654_321], 30), (free[2:3], 30),
    ):  # fmt: skip
        last, _ = service.requests.submit(Asked({"ids": ids}, "gdpr", today() + timedelta(days=days)), SHOP)
    service.requests.decide(last, "cancelled", SHOP, "asked for by mistake")
    made = {REQUESTER: service.tokens.make(SHOP, REQUESTER)}
    made |= {role: service.tokens.make(role, role) for role in (OPERATOR, AUDITOR)}
    service.close()
    return made
