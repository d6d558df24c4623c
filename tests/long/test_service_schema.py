"""Whatever the description of the service allows, and what it does not, is answered without a fault."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from maxrr.service import app
from maxrr.service.protocols import Protocols
from tests.service.conftest import House, fitted, folder
from tests.service.conftest import settings as told
from tests.service.receivers import DOMAIN, certificate

__all__ = ["fitted", "folder", "told"]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_call_makes_a_fault(told, mode, tmp_path):
    said = {
        "url": f"https://{DOMAIN}/v2", "certificate": certificate(tmp_path / "opendsr.pem"),
        "identities": ["email:raw"], "callbacks": {"operator": ["http://127.0.0.1:1"]},
    }  # fmt: skip
    protocols = Protocols.model_validate({"opendsr": said, "fides": {"host": "http://127.0.0.1:1"}})
    made = app(replace(told, protocols=protocols, resolver=lambda kind, value: None))
    made.state.service.current.refresh()
    made.state.service.limits.rate = 1e9
    schema, seen = schemathesis.openapi.from_dict(made.openapi()), Counter()
    with TestClient(made, raise_server_exceptions=False) as client:
        house = House(client, made.state.service)
        waiting = [house.submit(ids=[id_])["id"] for id_ in house.ids("core")[:5]]
        operations = [found.ok() for found in schema.get_all_operations()]
        assert len(operations) > 25
        for operation in operations:

            @given(case=operation.as_strategy(generation_mode=mode), which=st.sampled_from([*waiting, None]))
            @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate],
                      database=None)  # fmt: skip
            def call(case, which):
                if which is not None and "id" in case.path_parameters:
                    case.path_parameters["id"] = which
                asked = case.as_transport_kwargs(base_url="http://testserver")
                asked["headers"] = {**dict(asked["headers"]), "Authorization": f"Bearer {house.tokens['operator']}"}
                asked.pop("cookies", None)
                if isinstance(asked.get("data"), bytes):
                    asked["content"] = asked.pop("data")
                try:
                    answer = client.request(**asked)
                except (UnicodeEncodeError, ValueError):  # what no client can send
                    return
                seen[answer.status_code // 100] += 1
                assert answer.status_code < 500, (asked, answer.text)

            with suppress(Unsatisfiable):  # nothing can be wrong with a call that takes nothing
                call()
    assert seen.total() > 300
