"""Slices whose declared time a run refuses, and slices that a resumed run leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright import Project
from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.slices.application import application_of
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.time_check import early_error
from lakewright.spec.expressions.scope import Scope
from lakewright.usecases.failed_runs.next_slices import slices_left_out
from lakewright.usecases.placed import chain_of

LATE = "2024-05-01.csv"
LATER = "2024-05-03T00:00:01+00:00"
REBUILD = f"lakewright rebuild orders --include {LATE}"
PROCESS = f"lakewright process orders {LATE} --processing-time {LATER}"


@contextmanager
def app_of(folder: Path) -> Iterator[App]:
    with Project.load(folder) as project:
        yield project.app


def process(folder: Path, name: str) -> None:
    """Record a slice as processed, without Spark."""
    with app_of(folder) as app:
        item = (folder / "lake/bronze/orders" / name).as_uri()
        application = application_of("shop", app.project.entity("orders"))
        lease = timedelta(seconds=60)
        claim = app.ledger.acquire(item, application, app.holder, duration=lease, token_counter="orders")
        app.ledger.processed(claim, {})


def test_no_time_is_refused_of_a_target_that_merges_the_slices_of_a_historic_entity(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = (tmp_path / "m.yml").read_text()
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: merge, {BY_SLICE}"))
    requeued = shop.run("manifest", "requeue", f"orders/{LATE}", "--late")
    assert (requeued.code, "refuses" in requeued.err) == (0, False), requeued.all


def test_a_slice_of_an_instance_that_a_killed_run_did_not_reach_is_not_left_out(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", 'slices: "${day}*"')
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0

    def left_out(given: str, *done: str) -> bool:
        with app_of(tmp_path) as app:
            holder = replace(app.holder, pid=1)
            run = Run(f"run of {given}", "shop", "daily", "BUILD", {"day": given}, app.store.now(), holder)
            run = app.journal.start_run(run)
            common = {
                "phase": "BUILD",
                "reasons": [],
                "name": "orders",
                "kind": "entity",
                "status": "SUCCESS",
            }
            app.journal.record_targets(run, dict(enumerate({**common, "instance": {"day": d}} for d in done)))
            return slices_left_out(app, run)

    assert not left_out("2024-05-02,2024-05-01", "2024-05-02")
    assert left_out("2024-05-01,2024-05-02", "2024-05-01")
    # Its instance is none of the run's.
    assert not left_out("2024-05-02,2024-05-03", "2024-05-02")


def test_a_rebuild_is_not_named_where_no_job_declares_a_processing_time(tmp_path: Path) -> None:
    """`rebuild --include` refused the slice that the error had named."""
    processed(tmp_path, "historic", BY_SLICE)
    with Project.load(tmp_path) as project:
        entity, zone = project.app.project.entity("orders"), project.app.project.lake.zone

        def remedy(*, is_declared: bool) -> str | None:
            times = ProcessingTimes("${slice.date}", zone, Scope(), False, print, is_declared)
            error = early_error(chain_of(project.app, entity), [LATE], times)
            return None if error is None else error.remedy

        declared = remedy(is_declared=True)
        given = remedy(is_declared=False)
    assert declared is not None
    assert declared.startswith(
        f"Put it in its place: `{REBUILD}`. Only to make its rows the current ones: `{PROCESS}`."
    )
    assert given is not None
    assert given.startswith("Give a later time: `lakewright process orders")
    assert "rebuild" not in given
