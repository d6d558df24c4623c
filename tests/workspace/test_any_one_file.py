"""Any one file of a workspace is put back as it was before a request, deleted, or cut: it is said, or nothing is lost
by it. Never is the state another one without a word, nor is anything there that was forgotten.

No test names a file: whatever files a workspace has are tried.
"""

import functools
import os
import shutil
from unittest import mock

import pytest

from maxrr.workspace import Workspace
from tests.cases import some
from tests.workspace.disk import files_below
from tests.workspace.outside import (
    ACTS,
    BYTES,
    EXPORTS,
    STATE,
    complaints,
    export,
    facts,
    known_of,
    none_of,
    places,
    reading,
    secrets_of,
    working,
)

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture(scope="module")
def story(small, key, tmp_path_factory):
    """A workspace to which some things were done, by their names."""
    place = tmp_path_factory.mktemp("stories")

    @functools.cache
    def of(*acts):
        return Story(small(key), place / ", ".join(acts), key, acts)

    return of


class Story:
    """A workspace to which something was done, and how its files were before."""

    def __init__(self, start, place, key, acts):
        place.mkdir()
        self.folder, self.key = shutil.copytree(start, place / "workspace"), key
        self.before = self.contents()
        with self.at_home(), Workspace.open(self.folder, signing_key=key) as workspace:
            known = known_of(workspace)
            for act in acts:
                ({**ACTS, "export": export})[act](workspace)
            self.state, self.secrets = facts(workspace), secrets_of(known, known_of(workspace))
        self.after = self.contents()

    def at_home(self):
        """What was seen of this workspace is remembered, whichever test asks."""
        return mock.patch.dict(os.environ, {"XDG_STATE_HOME": str(self.folder.with_name("home"))})

    def contents(self):
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files_below(self.folder)}

    @functools.cached_property
    def put_back(self):
        """What is wrong where one file is as it was, with those that have gone since."""
        return self.with_other(("put back", name, old) for name, old in self.before.items())

    @functools.cached_property
    def deleted(self):
        """What is wrong where one file is missing."""
        return self.with_other(("deleted", name, None) for name in self.after)

    def with_other(self, contents):
        """What is wrong once one file or another has another content; None deletes it."""
        wrong = []
        for how, name, content in contents:
            if self.after.get(name) == content:
                continue
            copy = self.folder.with_name("copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder, copy)
            if content is None:
                (copy / name).unlink()
            else:
                (copy / name).parent.mkdir(exist_ok=True, parents=True)
                (copy / name).write_bytes(content)
            with self.at_home():
                found = complaints(copy, self.key, self.state, self.secrets)
            wrong += [each._replace(words=f"{name} {how}: {each}") for each in found]
        return wrong


def only(kinds, wrong):
    return [each for each in wrong if each.kind in kinds]


# What is done after a file was copied: "export" is another request, which revokes an export.
TOLD = some(5, [
    ("forget",), ("add",), ("forget", "export"), ("shape", "forget"), ("rectify", "forget"),
    ("shape",), ("rectify",), ("several",), ("forget", "forget"), ("several", "forget"), ("add", "forget"),
    ("shape", "export"), ("rectify", "export"), ("several", "export"), ("add", "export"),
])  # fmt: skip


@pytest.mark.parametrize("acts", TOLD[:2], ids=" ".join)
def test_an_untouched_workspace_is_not_complained_of(story, key, tmp_path, acts):
    """Or what follows would prove nothing."""
    told = story(*acts)
    for look in (reading, working):
        seen = look(shutil.copytree(told.folder, tmp_path / look.__name__), key)
        assert (seen.told, seen.facts) == ("", told.state)
    assert told.secrets or acts == ("add",)


@pytest.mark.parametrize("acts", TOLD, ids=" ".join)
def test_a_file_that_is_put_back_does_not_bring_back_an_old_state(story, acts):
    none_of(only({STATE, EXPORTS}, story(*acts).put_back))


@pytest.mark.parametrize("acts", TOLD, ids=" ".join)
def test_a_file_that_is_put_back_does_not_bring_back_what_was_forgotten(story, acts):
    none_of(only({BYTES}, story(*acts).put_back))


@pytest.mark.parametrize("act", some(1, list(ACTS)))
def test_a_file_that_is_deleted_does_not_change_the_state(story, act):
    none_of(only({STATE, BYTES}, story(act, "export").deleted))


@pytest.mark.parametrize("act", some(1, list(ACTS)))
def test_a_file_that_is_deleted_does_not_hide_an_export(story, act):
    """One that is revoked would answer again."""
    none_of(only({EXPORTS}, story(act, "export").deleted))


@pytest.mark.parametrize("act", some(1, ["several", "add", "forget", "shape", "rectify"]))
def test_what_is_cut_off_after_it_was_acknowledged_is_noticed(story, act):
    """In every file that has grown by the request."""
    told, cut = story(act), []
    for name, content in told.after.items():
        old = told.before.get(name, b"")
        more = len(content) - len(old)
        if more > 0 and content.startswith(old):
            for many in (*places(more), more):
                cut += [
                    (f"cut by {many}", name, content[:-many]),
                    (f"with {many} zeros", name, content[:-many] + bytes(many)),
                ]
    assert cut
    none_of(told.with_other(cut))
