"""A workspace that is killed at every point of every request, and its root with any value in any field."""

from tests.workspace.conftest import template  # noqa: F401
from tests.workspace.test_crash import SCENARIOS, check_killed, killed_everywhere
from tests.workspace.test_fuzz import WRONG, try_all, used  # noqa: F401


def test_every_point_leaves_the_old_state_or_the_new(tmp_path):
    found = killed_everywhere(tmp_path / "place", SCENARIOS)
    assert tuple(found) == SCENARIOS
    check_killed(found)
    assert sum(line["killed"] for line in found.values()) >= 200


def test_any_field_with_any_other_value(used, tmp_path):  # noqa: F811
    try_all(used, tmp_path, lambda: WRONG)
