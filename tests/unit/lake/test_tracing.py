"""Spans of OpenTelemetry, recorded by an SDK in this process."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lakewright.lake.tracing import span
from lakewright.run.scheduler import Workers


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield found
    provider.shutdown()


def test_spans_are_inside_each_other_with_their_attributes(exporter: InMemorySpanExporter) -> None:
    with span("job daily", run="r1", nothing=None), span("orders BUILD") as inner:
        inner.note(status="SUCCESS", slices=2)
    within, around = exporter.get_finished_spans()
    assert (within.name, around.name) == ("orders BUILD", "job daily")
    assert within.parent is not None
    assert within.parent.span_id == around.context.span_id
    assert dict(around.attributes or {}) == {"lakewright.run": "r1"}
    assert dict(within.attributes or {}) == {"lakewright.status": "SUCCESS", "lakewright.slices": 2}


def test_work_in_threads_is_inside_the_span_of_the_run(exporter: InMemorySpanExporter) -> None:
    def work() -> int:
        with span("target"):
            return 1

    workers: Workers[str, int] = Workers(2)
    with span("run"):
        workers.begin("a", work)
        workers.begin("b", work)
        assert workers.next_done() is not None
        assert workers.next_done() is not None
    workers.close()
    *targets, run = exporter.get_finished_spans()
    assert [each.parent.span_id for each in targets if each.parent] == [run.context.span_id] * 2


def test_an_error_makes_the_span_one_of_an_error(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="bad slice"), span("slice"):
        raise ValueError("bad slice")
    (found,) = exporter.get_finished_spans()
    assert not found.status.is_ok
    assert [event.name for event in found.events] == ["exception"]


def test_an_sdk_that_fails_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("the exporter is broken")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    for _ in range(3):
        with span("run"):
            pass
    assert caplog.text.count("the exporter is broken") == 1


def test_without_opentelemetry_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    monkeypatch.setattr("os.environ", {})
    with contextvars.Context().run(span, "run") as made:
        assert made.otel is None
    assert "opentelemetry.trace" not in sys.modules
