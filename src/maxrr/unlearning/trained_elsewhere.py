"""What an extractor that was trained elsewhere may still be used for, once records that it saw are gone."""

import numpy as np

from maxrr.core import Adopted, Core
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED


def to_train_by(core: Core, before: Fitted | None) -> Core | None:
    """How to choose the core that an adopted network is trained on again; None where nothing asks for that.

    A network that saw records which were forgotten or replaced since is not adopted again: it would bring them back.
    """
    if before is None or not isinstance(core, Adopted):
        return None
    ids = np.array(core.trained_on)
    forgotten, replaced = (before.tombstones.knows(before.key, ids, *purpose) for purpose in ((), (REPLACED,)))
    return core.to_train(forgotten) if (forgotten | replaced).any() else None
