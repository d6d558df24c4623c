"""A served model refuses to answer once a list says so, or once nobody can tell."""

import http.server
import json
import os
import threading

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.errors import RevocationsUnread, Revoked
from maxrr.serving import Revocations, export, export_onnx, load, revocations
from maxrr.serving.revocations import Watch
from maxrr.workspace import Workspace
from tests.serving.models import fitted
from tests.unlearning.problems import table

SOME = table(count=10, seed=1).inputs


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with Workspace.create(tmp_path_factory.mktemp("ws") / "ws", MaxRR.on_features(C=0.7), table()) as made:
        yield made


@pytest.fixture
def published(tmp_path, workspace):
    """Writes the list of the workspace where servers look for it."""
    path = tmp_path / "revoked.json"

    def publish():
        path.write_text(Revocations.of(workspace.folder).to_json())
        return path

    return publish


def forget(workspace):
    workspace.model.unlearn(workspace.model.ids_of("influential")[:1])


def test_from_forgetting_to_the_next_export(workspace, published, tmp_path):
    served_folder = tmp_path / "model"
    first = export(workspace, served_folder)
    served = load(served_folder, revocations=published(), refresh=0)
    before = served.predict_proba(SOME)
    forget(workspace)
    assert np.array_equal(served.predict_proba(SOME), before)  # until it is told
    published()
    for act in (served.predict, served.predict_proba, served.decision_function):
        with pytest.raises(Revoked, match=rf"export {first.export}.*Export"):
            act(SOME)
    with pytest.raises(Revoked):
        load(served_folder, revocations=published())
    assert not served.reload()
    second = export(workspace, served_folder)
    assert served.reload()
    assert np.allclose(served.predict_proba(SOME), workspace.model.predict_proba(SOME), rtol=0, atol=1e-6)
    assert served.model_hash == workspace.model.model_hash_
    assert [each.id for each in workspace.exports() if not each.revoked] == [second.export]
    assert first.export in Revocations.of(workspace.folder).revoked
    assert second.export not in Revocations.of(workspace.folder).revoked


@pytest.mark.long
def test_an_onnx_file_is_noted_too(workspace, tmp_path):
    written = export_onnx(workspace, tmp_path / "model.onnx")
    (noted,) = (each for each in workspace.exports() if each.id == written.export)
    assert (noted.kind, noted.path, noted.out_of_date) == ("onnx", str(tmp_path / "model.onnx"), False)
    forget(workspace)
    (noted,) = (each for each in workspace.exports() if each.id == written.export)
    assert noted.out_of_date
    assert noted.revoked


def test_an_export_that_fails_is_not_noted(workspace, tmp_path):
    before = workspace.exports()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other things"):
        export(workspace, tmp_path)
    assert workspace.exports() == before


def test_a_list_says_nothing_of_models_and_records(workspace, tmp_path):
    export(workspace, tmp_path / "model")
    forget(workspace)
    said = json.loads(Revocations.of(workspace.folder).to_json())
    assert said.keys() == {"format", "version", "workspace", "time", "revoked"}
    assert all(len(each) == 32 for each in said["revoked"])


# When the list is read


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def watched(tmp_path):
    path, clock = tmp_path / "revoked.json", Clock()

    def publish(*revoked, workspace="w"):
        path.write_text(Revocations(workspace, "2026-01-01T00:00:00+00:00", revoked).to_json())

    publish()
    return path, clock, publish, Watch(str(path), "w", 60.0, 300.0, clock)


def test_it_is_read_when_it_is_due(watched):
    _, clock, publish, watch = watched
    watch.check("a")
    publish("a")
    clock.now += 59
    watch.check("a")
    clock.now += 1
    with pytest.raises(Revoked):
        watch.check("a")
    watch.check("b")
    publish()  # an older list put back
    clock.now += 60
    with pytest.raises(Revoked):
        watch.check("a")


@pytest.mark.parametrize("how", ["missing", "half", "other", "pipe", "binary", "numbers"])
def test_where_it_cannot_be_read_the_last_one_counts_for_a_while(watched, how):
    path, clock, publish, watch = watched
    watch.check("a")
    path.unlink()
    if how == "half":
        path.write_text('{"format": "maxrr revocations", "vers')
    elif how == "other":
        publish(workspace="another")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "binary":
        path.write_bytes(b"\xff\xfe")
    elif how == "numbers":
        publish(1, 2)
    clock.now += 300
    watch.check("a")
    clock.now += 1
    for _ in range(2):
        with pytest.raises(RevocationsUnread, match=r"revoked\.json"):
            watch.check("a")
    if how == "pipe":
        path.unlink()
    publish()
    clock.now += 60
    watch.check("a")


def test_without_a_list_at_the_start_nothing_is_answered(workspace, tmp_path, published):
    export(workspace, tmp_path / "model")
    with pytest.raises(RevocationsUnread, match="No such file"):
        load(tmp_path / "model", revocations=tmp_path / "nowhere.json")
    published().write_text("{}")
    with pytest.raises(RevocationsUnread, match="format 'maxrr revocations'"):
        load(tmp_path / "model", revocations=tmp_path / "revoked.json")


def test_what_cannot_be_meant_is_refused(workspace, tmp_path, published):
    export(workspace, tmp_path / "model")
    for source in ("ftp://example.org/list", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="https:// or http://"):
            load(tmp_path / "model", revocations=source)
    with pytest.raises(ValueError, match="least refresh"):
        load(tmp_path / "model", revocations=published(), refresh=60, max_age=10)
    export(fitted("embeddings"), tmp_path / "model")
    with pytest.raises(ValueError, match="not exported"):
        load(tmp_path / "model", revocations=published())


def test_an_export_that_the_list_is_not_about_is_not_taken(workspace, tmp_path, published):
    first = export(workspace, tmp_path / "model")
    served = load(tmp_path / "model", revocations=published(), refresh=0)
    with Workspace.create(tmp_path / "other", MaxRR.on_features(C=0.7), table()) as other:
        for source in (other, fitted("embeddings")):
            export(source, tmp_path / "model")
            with pytest.raises(ValueError, match="workspace by now"):
                served.reload()
            assert served.export == first.export
    export(workspace, tmp_path / "model")
    assert served.reload()


# From an address


@pytest.fixture
def address():
    """A server that answers with what is in `answers`: status, headers, content."""
    answers = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, content = answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_list_at_an_address(address, monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "*")
    url, answers = address
    text = Revocations("w", "now", ("a",)).to_json().encode()
    answers["/list"] = 200, {}, text
    answers["/moved"] = 302, {"Location": f"{url}/list"}, b""
    for path in ("/list", "/moved"):
        watch = Watch(url + path, "w", 0.0, 10.0)
        watch.check("b")
        with pytest.raises(Revoked):
            watch.check("a")
    (tmp_path / "list").write_bytes(text)
    answers["/away"] = 302, {"Location": f"file://{tmp_path / 'list'}"}, b""
    answers["/ftp"] = 302, {"Location": "ftp://127.0.0.1:1/list"}, b""
    answers["/fault"] = 500, {}, text
    monkeypatch.setattr(revocations, "LARGEST", 1000)
    answers["/long"] = 200, {}, b" " * 1001 + text
    for path in ("/away", "/ftp", "/fault", "/nothing", "/long"):
        with pytest.raises(RevocationsUnread, match=path):
            Watch(url + path, "w", 0.0, 10.0).check("b")
    with pytest.raises(RevocationsUnread):
        Watch("http://127.0.0.1:1/list", "w", 0.0, 10.0).check("b")
    with pytest.raises(RevocationsUnread):
        Watch("http://[bad", "w", 0.0, 10.0).check("b")


def test_an_older_list_is_believed_by_those_alone_who_load_after_it_was_put_back(workspace, published, tmp_path):
    export(workspace, tmp_path / "model")
    older = published().read_text()
    served = load(tmp_path / "model", revocations=published(), refresh=0)
    forget(workspace)
    with pytest.raises(Revoked):
        load(tmp_path / "model", revocations=published())
    with pytest.raises(Revoked):
        served.predict(SOME)
    (tmp_path / "revoked.json").write_text(older)
    assert len(load(tmp_path / "model", revocations=tmp_path / "revoked.json").predict(SOME)) == len(SOME)
    assert not served.reload()
    with pytest.raises(Revoked):
        served.predict(SOME)
