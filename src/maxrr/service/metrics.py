"""What is counted, as Prometheus reads it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maxrr.service.guard import BOUNDS, Watch
from maxrr.service.states import STATES
from maxrr.service.versions import Version


def text(watch: Watch, counts: Mapping[str, int], workers: Sequence[Any], last: Sequence[Version]) -> str:
    """Return all metrics: of the calls to this server, the requests, the workers, and the last version of the model."""
    return "\n".join([*calls(watch), *gauges(counts, workers, last), ""])


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


def gauge(name: str, *values: float | tuple[str, float]) -> Iterator[str]:
    """A number, or one for each of some labels."""
    yield f"# TYPE maxrr_{name} gauge"
    for labels, value in (each if isinstance(each, tuple) else ("", each) for each in values):
        yield f"maxrr_{name}{labels and f'{{{labels}}}'} {value}"


def gauges(counts: Mapping[str, int], workers: Sequence[Any], last: Sequence[Version]) -> Iterator[str]:
    """The requests by state, and those that are late or due within a week; answers that have not arrived yet; how long
    ago the workers were heard of, and what stops them; and the last version of the model.
    """
    yield from gauge("requests", *((f'state="{state}"', counts.get(state, 0)) for state in STATES))
    yield from gauge("requests_late", counts["late"])
    yield from gauge("requests_due_soon", counts["due_soon"])
    yield from gauge("answers", *((f'state="{name}"', counts[name]) for name in ("not_fetched", "not_delivered")))
    heard = ((f'worker="{each.name}",stopped_by="{each.code}"', round(each.ago, 1)) for each in workers)
    yield from gauge("worker_seen_seconds", *heard)
    for each in last:
        yield from gauge("model", (f'version="{each.model[:16]}"', 1))
        yield from gauge("model_records", each.records)
        if each.accuracy is not None:
            yield from gauge("model_accuracy", each.accuracy)
