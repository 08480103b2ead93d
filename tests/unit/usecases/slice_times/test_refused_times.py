"""A run that refuses the time of a late slice is not told to be resumed: the commands that work are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.documents import checked
from tests.unit.serve.sites import served
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, processed

from lakewright import Project
from lakewright.app import App
from lakewright.manifest.item import Item
from lakewright.manifest.journal import Run
from lakewright.slices.application import application_of
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.time_check import early_error
from lakewright.spec.expressions.scope import Scope
from lakewright.usecases.failed_runs import next_slices
from lakewright.usecases.failed_runs.resume import next_step
from lakewright.usecases.placed import chain_of

LATE = "2024-05-01.csv"
LATER = "2024-05-03T00:00:01+00:00"
REBUILD = f"lakewright rebuild orders --include {LATE}"
PROCESS = f"lakewright process orders {LATE} --processing-time {LATER}"
RESUME = "lakewright job daily build day=2024-05-01 --resume"


@contextmanager
def app_of(folder: Path) -> Iterator[App]:
    with Project.load(folder) as project:
        yield project.app


def failed_run(folder: Path, code: str, name: str = "orders") -> None:
    """Record a run that left a target undone, by default that of `orders`."""
    with app_of(folder) as app:
        now, given = app.store.now(), {"day": "2024-05-01"}
        run = app.journal.start_run(Run("run-1", "shop", "daily", "BUILD", given, now, app.holder))
        error = {"code": code, "message": "refused", "remedy": None, "location": None}
        common = {"phase": "BUILD", "instance": given, "reasons": [], "metrics": {}, "seconds": 0.1}
        done = {"name": "orders", "kind": "entity", "status": "SUCCESS", "error": None, **common}
        failed = {**done, "name": name, "status": "FAILED", "error": error}
        app.journal.record_targets(run, dict(enumerate((failed,) if name == "orders" else (done, failed))))
        app.journal.finish_run(run, "FAILED", finished=now)


def process(folder: Path, name: str) -> None:
    """Record a slice as processed, without Spark."""
    with app_of(folder) as app:
        item = (folder / "lake/bronze/orders" / name).as_uri()
        application = application_of("shop", app.project.entity("orders"))
        lease = timedelta(seconds=60)
        claim = app.ledger.acquire(item, application, app.holder, duration=lease, token_counter="orders")
        app.ledger.processed(claim, {})


def told(shop: InProcess) -> list[str | None]:
    """What JSON says to do about the runs."""
    return [run["do"] for run in checked(shop.json("status"))["last_runs"]]


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_a_requeued_slice_whose_time_a_run_would_refuse_does_not_wait_for_the_next_run(
    tmp_path: Path, target: str
) -> None:
    shop = processed(tmp_path, "historic", target)
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    page = " ".join(shop.run("status").out.split())
    why = (
        "orders: 1 slice waits for a rebuild that puts it in its place a run would refuse it: the processing"
    )
    assert why in page
    assert f"do: `{REBUILD}`" in page
    assert PROCESS not in page
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert waiting["do"] == [REBUILD]
    assert waiting["refused"].startswith("the processing time 2024-05-01T00:00:00+00:00 is not later than")
    process(tmp_path, LATE)
    assert shop.json("status")["waiting"] == []


def test_the_command_has_the_strategy_of_a_target_that_does_not_use_the_entitys_own(tmp_path: Path) -> None:
    """`process` would have merged the slice into the table of versions."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = (tmp_path / "m.yml").read_text().replace("processtype: historic", "processtype: merge")
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: historic, {BY_SLICE}"))
    typed = f"{PROCESS} --strategy historic"
    requeued = shop.run("manifest", "requeue", f"orders/{LATE}", "--late")
    assert (requeued.code, f"`{typed}`" in requeued.err) == (0, True), requeued.all
    assert f"do: `{typed}`" in " ".join(shop.run("status").out.split())
    assert f"`{typed}`" in shop.run("plan", "daily", "build", "day=2024-05-01").all.replace("\n", " ")


def test_no_time_is_refused_of_a_target_that_merges_the_slices_of_a_historic_entity(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = (tmp_path / "m.yml").read_text()
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: merge, {BY_SLICE}"))
    requeued = shop.run("manifest", "requeue", f"orders/{LATE}", "--late")
    assert (requeued.code, "refuses" in requeued.err) == (0, False), requeued.all


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
@pytest.mark.parametrize("code", ["backdated", "late_slice"])
def test_a_run_that_would_refuse_a_requeued_slice_is_told_with_the_command_that_processes_it(
    tmp_path: Path, target: str, code: str
) -> None:
    shop = processed(tmp_path, "historic", target)
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    failed_run(tmp_path, code)
    page = " ".join(shop.run("status").out.split())
    assert "it would fail again: the processing time 2024-05-01T00:00:00+00:00 is not later than" in page
    assert f"then `{REBUILD}`, then `{RESUME}`" in page
    assert PROCESS not in page
    assert told(shop) == [REBUILD]

    process(tmp_path, LATE)
    assert told(shop) == [None]  # nothing of the run is left
    assert "Runs that failed" not in shop.run("status").out


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_a_killed_run_would_refuse_another_file_of_the_day_that_it_did_not_reach(
    tmp_path: Path, target: str
) -> None:
    """`--resume` was named, and failed, as the run had not recorded what it left."""
    shop = processed(tmp_path, "historic", target)
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    with app_of(tmp_path) as app:
        holder = replace(app.holder, pid=1)
        day = {"day": "2024-05-01"}
        app.journal.start_run(Run("run-1", "shop", "daily", "BUILD", day, app.store.now(), holder))
    assert told(shop) == [REBUILD]
    assert "it would fail again: the processing time 2024-05-01T" in " ".join(shop.run("status").out.split())


def test_a_slice_that_waits_where_the_run_was_done_is_not_left_out_by_resuming(tmp_path: Path) -> None:
    """Of a check that failed because of a slice, which was corrected since: it failed again and again."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    failed_run(tmp_path, "verification", name="checks")
    assert told(shop) == [RESUME]
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0

    assert told(shop) == [RESUME.removesuffix(" --resume")]
    page = " ".join(shop.run("status").out.split())
    assert "--resume would leave out 1 slice of orders do: see why" in page


def test_a_slice_that_a_failed_run_takes_once_all_is_run_again_has_no_second_command(tmp_path: Path) -> None:
    """Both were typed, from top to bottom, and rows of APPEND came twice."""
    shop = processed(tmp_path, "merge", 'slices: "${day}*"')
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    whole = RESUME.removesuffix(" --resume")
    assert [each["do"] for each in shop.json("status")["waiting"]] == [[whole]]
    failed_run(tmp_path, "verification", name="checks")
    status = shop.json("status")
    assert (told(shop), [each["do"] for each in status["waiting"]]) == ([whole], [[]])


def test_a_run_that_would_take_a_late_slice_says_so(tmp_path: Path) -> None:
    """It stood above the command that must be typed first, and failed."""
    shop = processed(tmp_path, "merge", 'slices: "${day}*"')
    (tmp_path / "lake/bronze/orders/2024-05-01b.csv").write_text("id\n1\n")
    shop.json("manifest", "discover")
    failed_run(tmp_path, "storage_unavailable")
    page = " ".join(shop.run("status").out.split())
    assert (
        "it would fail again: 2024-05-01b.csv of orders is late: first type what is named for the slice "
    ) in page
    assert shop.run("manifest", "requeue", "orders/2024-05-01b.csv", "--late").code == 0
    assert "it would fail again" not in shop.run("status").out


def test_a_day_that_is_empty_as_its_slice_is_skipped_is_to_be_accepted(tmp_path: Path) -> None:
    """`--resume` was named first, and failed again each time, under a new id."""
    shop = processed(tmp_path, "merge", 'slices: "${day}*"')
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    assert shop.run("manifest", "skip", f"orders/{LATE}").code == 0
    with app_of(tmp_path) as app:
        now, given = app.store.now(), {"day": "2024-05-01"}
        run = app.journal.start_run(Run("run-1", "shop", "daily", "VERIFY", given, now, app.holder))
        error = {"code": "verification", "message": "target 'days': it is empty", "remedy": None}
        entry = {"name": "days", "phase": "VERIFY", "instance": given, "reasons": [], "metrics": {}}
        app.journal.record_targets(run, {0: {**entry, "status": "FAILED", "error": error, "is_empty": True}})
        app.journal.finish_run(run, "FAILED", finished=now)
    page = " ".join(shop.run("status").out.split())
    assert f"{LATE} of orders is skipped, so that nothing may be left to do do: see why with" in page
    assert told(shop) == ["lakewright history accept run-1"]
    assert shop.run("history", "accept", "run-1").code == 0
    assert "Runs that failed" not in shop.run("status").out


def test_a_slice_in_bronze_that_no_run_has_seen_is_left_out_by_resuming(tmp_path: Path) -> None:
    """As of a job that ran before any delivery: resumed, it fails again for want of the silver table."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    failed_run(tmp_path, "target", name="names")
    bronze = tmp_path / "lake/bronze/orders"
    (bronze / "2024-04-01.csv").write_text("id\n1\n")  # late, so that the next run refuses it
    assert told(shop) == [RESUME]
    (bronze / "2024-05-04.csv").write_text("id\n1\n")
    assert told(shop) == [RESUME.removesuffix(" --resume")]
    assert "--resume would leave out 1 slice of orders do:" in " ".join(shop.run("status").out.split())

    with app_of(tmp_path) as app:
        (run,) = app.journal.runs()
        held = Item((bronze / "2024-05-04.csv").as_uri(), skipped=())
    with app_of(tmp_path) as app, pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_slices, "as_if_recovered", lambda *_: {held.item_id: held})
        assert next_step(app, run).left_out is None  # the table holds it already

    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("kind: entity,", "kind: entity, slices: '2025*',"))
    assert told(shop) == [RESUME]  # the target does not take it


def test_a_slice_of_an_instance_that_a_killed_run_did_not_reach_is_not_left_out(tmp_path: Path) -> None:
    """`status` named the whole job instead, although `--resume` took the slice."""
    shop = processed(tmp_path, "merge", 'slices: "${day}*"')
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0

    def left_out(given: str, *done: str) -> str | None:
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
            return next_step(app, run).left_out

    assert left_out("2024-05-02,2024-05-01", "2024-05-02") is None
    assert left_out("2024-05-01,2024-05-02", "2024-05-01") == "1 slice of orders"
    # Its instance is none of the run's.
    assert left_out("2024-05-02,2024-05-03", "2024-05-02") is None


def test_the_page_of_the_run_offers_no_button_that_fails_again(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    failed_run(tmp_path, "backdated")
    with served(tmp_path, allows_actions=True) as site:
        page = site.client.get("/runs/run-1", headers={"accept": "text/html"}).text.replace("&#43;", "+")
        assert REBUILD in page
        assert "--processing-time" not in page
        assert "/do/resume" not in page


@pytest.mark.parametrize(
    ("strategy", "target"),
    [
        ("merge", BY_SLICE),  # its rows have no time
        ("historic", "description: the time is the clock's"),
        ("historic", 'processingTime: "2999-01-01"'),
        ("historic", f"{BY_SLICE}, slices: '2025*'"),  # the target does not take the slice
    ],
)
def test_a_run_whose_slices_have_good_times_is_told_to_be_resumed(
    tmp_path: Path, strategy: str, target: str
) -> None:
    shop = processed(tmp_path, strategy, target)
    assert shop.run("manifest", "requeue", f"orders/{LATE}", "--late").code == 0
    failed_run(tmp_path, "late_slice")
    assert told(shop) == [RESUME]
    assert [each["refused"] for each in shop.json("status")["waiting"]] == [None]


def test_a_slice_that_the_run_fails_as_late_needs_no_time(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    (tmp_path / "lake/bronze/orders/2024-04-01.csv").write_text("id\n1\n")
    shop.json("manifest", "discover")
    failed_run(tmp_path, "storage_unavailable")
    assert told(shop) == [RESUME]


def test_many_slices_are_put_in_their_place_by_one_command(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    for day in (27, 28, 29, 30):
        (tmp_path / f"lake/bronze/orders/2024-04-{day}.csv").write_text("id\n1\n")
    names = [f"orders/2024-04-{day}.csv" for day in (27, 28, 29, 30)]
    assert shop.run("manifest", "requeue", *names, "--late").code == 0
    failed_run(tmp_path, "backdated")
    page = " ".join(shop.run("status").out.split())
    included = " ".join(f"--include 2024-04-{day}.csv" for day in (27, 28, 29, 30))
    assert f"then `lakewright rebuild orders {included}`, then `{RESUME}`" in page
    assert "orders: 4 slices wait for a rebuild that puts them in their place" in page


def test_a_run_is_not_told_to_be_resumed_before_all_slices_have_a_time(tmp_path: Path) -> None:
    """The commands of three slices are told at once; `status` tells those of the others after them."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = (tmp_path / "m.yml").read_text().replace("processtype: historic", "processtype: merge")
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: historic, {BY_SLICE}"))
    for day in (27, 28, 29, 30):
        (tmp_path / f"lake/bronze/orders/2024-04-{day}.csv").write_text("id\n1\n")
    names = [f"orders/2024-04-{day}.csv" for day in (27, 28, 29, 30)]
    assert shop.run("manifest", "requeue", *names, "--late").code == 0
    failed_run(tmp_path, "backdated")
    page = " ".join(shop.run("status").out.split())
    assert "orders 2024-04-29.csv --processing-time 2024-05-03T00:00:03+00:00 --strategy historic`" in page
    assert "--resume" not in page


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
