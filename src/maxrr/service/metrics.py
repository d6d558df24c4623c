"""What is counted, as Prometheus reads it."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence

from maxrr.service.guard import BOUNDS, Watch
from maxrr.service.states import STATES
from maxrr.service.versions import Version


def text(
    watch: Watch, counts: Mapping[str, int], workers: Mapping[str, tuple[str, str, float]], last: Sequence[Version]
) -> str:  # fmt: skip
    """Return all metrics: of the calls to this server, the requests, the workers, and the last version of the model."""
    return "\n".join([*calls(watch), *requests(counts), *at_work(workers), *model(last), ""])


def calls(watch: Watch) -> Iterator[str]:
    """The calls by route and status, and how long they took."""
    yield "# TYPE maxrr_calls_total counter"
    for (method, route, status), number in sorted(watch.calls.items()):
        yield f'maxrr_calls_total{{method="{method}",route="{route}",status="{status}"}} {number}'
    yield "# TYPE maxrr_call_seconds histogram"
    for route, seconds in sorted(watch.seconds.items()):
        total = 0
        for bound in (*BOUNDS, math.inf):
            total += watch.times[route, bound]
            yield f'maxrr_call_seconds_bucket{{route="{route}",le="{"+Inf" if bound == math.inf else bound}"}} {total}'
        yield f'maxrr_call_seconds_sum{{route="{route}"}} {seconds:.6f}'
        yield f'maxrr_call_seconds_count{{route="{route}"}} {total}'


def requests(counts: Mapping[str, int]) -> Iterator[str]:
    """The requests by state, those that are late or due within a week, and the answers that have not arrived yet."""
    yield "# TYPE maxrr_requests gauge"
    for state in STATES:
        yield f'maxrr_requests{{state="{state}"}} {counts.get(state, 0)}'
    yield "# TYPE maxrr_requests_late gauge"
    yield f"maxrr_requests_late {counts['late']}"
    yield "# TYPE maxrr_requests_due_soon gauge"
    yield f"maxrr_requests_due_soon {counts['due_soon']}"
    yield "# TYPE maxrr_answers gauge"
    for name in ("not_fetched", "not_delivered"):
        yield f'maxrr_answers{{state="{name}"}} {counts[name]}'


def at_work(workers: Mapping[str, tuple[str, str, float]]) -> Iterator[str]:
    """The workers, by how long ago they were heard of, and what stops them."""
    yield "# TYPE maxrr_worker_seen_seconds gauge"
    for name, (_, code, seen) in sorted(workers.items()):
        yield f'maxrr_worker_seen_seconds{{worker="{name}",stopped_by="{code}"}} {max(0.0, time.time() - seen):.1f}'


def model(last: Sequence[Version]) -> Iterator[str]:
    """The version of the model, its records, and its accuracy where it was measured."""
    for each in last:
        yield f'# TYPE maxrr_model gauge\nmaxrr_model{{version="{each.model[:16]}"}} 1'
        yield f"# TYPE maxrr_model_records gauge\nmaxrr_model_records {each.records}"
        if each.accuracy is not None:
            yield f"# TYPE maxrr_model_accuracy gauge\nmaxrr_model_accuracy {each.accuracy}"
