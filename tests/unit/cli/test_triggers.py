"""`lakewright triggers`, and what validate, plan, status and history tell of triggers; without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.unit.serve.slices import discover, fail, process

from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.manifest.lease import Leases
from lakewright.plan.phase import Phase
from lakewright.run.wants import Want
from lakewright.spec.models.trigger import Trigger
from lakewright.triggers.commands import ending_of
from lakewright.triggers.records import Lane, TriggerRecords
from lakewright.triggers.state import Attempt, Ending, Result, TriggerState

MODULE = """
connections: {shop: {}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
jobs: {gold: {targets: nothing}}
targets: {nothing: {kind: empty}}
triggers:
  arrivals: {entities: orders, on: arrival}
  nightly: {job: gold, phase: build, cron: "15 3 * * *", timezone: Europe/Amsterdam, description: each night}
  later: {job: gold, phase: build, cron: "@daily", enabled: false}
"""
DUE = datetime(2026, 5, 1, 1, 15, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NIGHTLY = Lane("nightly")


@pytest.fixture
def shell(tmp_path: Path) -> InProcess:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [module.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "module.yml").write_text(MODULE)
    return InProcess(tmp_path)


def failed(shell: InProcess, result: Result, lane: Lane = NIGHTLY) -> None:
    """Let a trigger have failed."""
    app = App.open(shell.folder, environ={})
    app.make_store()
    trigger: Trigger = app.project.trigger(lane.trigger)

    def fail(state: TriggerState) -> TriggerState:
        ending = Ending(DUE, DUE, DUE, result, "the disk is full", "run-7")
        return state.ask(DUE).start(DUE).finish(trigger, ending)

    TriggerRecords(app.store, "shop").change(lane, fail)
    app.close()


def test_the_list_says_what_runs_when_and_writes_nothing(shell: InProcess) -> None:
    arrivals, nightly, later = shell.json("triggers")
    assert (arrivals["runs"], arrivals["when"]) == ("process orders", "arrival of slices of orders")
    assert (nightly["runs"], nightly["when"]) == ("job gold build", "15 3 * * * Europe/Amsterdam")
    assert nightly["next"] > datetime.now(UTC).isoformat()
    assert (nightly["state"], later["state"], nightly["held_by"]) == ("waiting", "disabled", None)
    assert "each night" in nightly["description"]
    assert not (shell.folder / ".lakewright").exists()
    assert "3 triggers" in shell.run("validate").all


@pytest.mark.parametrize(
    ("result", "word"), [(Result.FAILED, "failed"), (Result.RETRY, "retrying")], ids=["failed", "retrying"]
)
def test_status_tells_a_trigger_that_failed_with_what_to_type(
    shell: InProcess, result: Result, word: str
) -> None:
    failed(shell, result)
    told = shell.run("status").out
    assert f"{word} nightly: job gold build" in told
    assert "the disk is full" in told
    assert ("lakewright triggers run nightly" in told) == (result is Result.FAILED)
    found = {each["trigger"]: each for each in shell.json("status")["triggers"]}
    assert found["nightly"]["last"]["run_id"] == "run-7"


def test_status_tells_what_the_last_run_of_a_trigger_warned_of(shell: InProcess) -> None:
    """Nobody reads the report of a run that a trigger starts; it was all that told of a missing column."""
    failed(shell, Result.SUCCEEDED, Lane("arrivals", "orders"))
    warning = "1.csv: column 'amount' is missing; it is null in what is written"
    app = App.open(shell.folder, environ={})
    records = TriggerRecords(app.store, "shop")

    def warn(state: TriggerState) -> TriggerState:
        assert state.last is not None
        return replace(state, last=replace(state.last, message="", warnings=(warning,)))

    records.change(Lane("arrivals", "orders"), warn)
    app.close()
    told = shell.run("status").out
    assert "waiting arrivals (orders): process orders" in told
    assert "warned by its last run, " in told
    assert warning in told
    assert warning in shell.run("triggers").out
    found = {each["trigger"]: each for each in shell.json("status")["triggers"]}
    assert (found["arrivals"]["warnings"], found["nightly"]["warnings"]) == ([warning], [])


def record_run(app: App) -> None:
    """Record a run that the trigger began, and that was killed."""
    dead = replace(app.holder, pid=2**30)
    run = Run("run-8", "shop", "gold", "BUILD", {}, DUE + MINUTE, dead, facts={"trigger": "nightly"})
    app.journal.start_run(run)


def test_a_trigger_whose_run_was_killed_names_the_run_and_that_it_is_tried_again(shell: InProcess) -> None:
    """A run that was killed did not tell its id, so that nothing said where to look."""
    app = App.open(shell.folder, environ={})
    app.make_store()
    record_run(app)
    trigger: Trigger = app.project.trigger("nightly")

    def kill(state: TriggerState) -> TriggerState:
        attempt = Attempt(DUE, DUE)
        return state.ask(DUE).start(DUE).finish(trigger, ending_of(attempt, 137, "", DUE + 2 * MINUTE))

    TriggerRecords(app.store, "shop").change(NIGHTLY, kill)
    told = " ".join(shell.run("status").out.split())
    assert "retrying nightly: job gold build signal 9 (SIGKILL) ended its process" in told
    assert "attempt 2 once a server runs, by itself look: `lakewright history show run-8`" in told
    assert "`lakewright history show run-8` do: `lakewright serve`" in told
    app.leases().acquire("trigger shop/nightly")
    assert "attempt 2 now, by itself look: `lakewright history show run-8`" in " ".join(
        shell.run("triggers").out.split()
    )
    app.close()


def test_a_run_whose_server_was_killed_is_not_said_to_be_running(shell: InProcess) -> None:
    app = App.open(shell.folder, environ={})
    app.make_store()
    record_run(app)
    TriggerRecords(app.store, "shop").change(NIGHTLY, lambda state: state.ask(DUE).start(DUE))
    told = " ".join(shell.run("status").out.split())
    assert (
        "interrupted nightly: job gold build the server that ran it was stopped or killed during the run, "
        "and no server runs now to repeat it look: `lakewright history show run-8` do: `lakewright serve`"
    ) in told
    found = {each["trigger"]: each for each in shell.json("triggers")}["nightly"]
    assert (found["state"], found["do"]) == ("interrupted", ["lakewright serve"])
    app.leases().acquire("trigger shop/nightly")
    assert {each["trigger"]: each for each in shell.json("triggers")}["nightly"]["state"] == "running"
    app.close()


def record_failure(app: App, run_id: str, begun: datetime, status: str = "FAILED") -> None:
    run = Run(run_id, "shop", "gold", "BUILD", {}, begun, app.holder, facts={"trigger": "nightly"})
    app.journal.finish_run(app.journal.start_run(run), status, finished=begun)


def test_a_failed_run_that_its_trigger_repeats_by_itself_is_listed_once(shell: InProcess) -> None:
    """It was listed with its trigger, and among the runs that failed, with a `--resume` beside the retry."""
    app = App.open(shell.folder, environ={})
    app.make_store()
    record_failure(app, "run-7", DUE)
    failed(shell, Result.RETRY)
    app.close()


@pytest.mark.parametrize("status", ["SUCCESS", "FAILED"])
def test_a_trigger_whose_failed_run_was_done_again_by_hand_is_not_told_as_failed(
    shell: InProcess, status: str
) -> None:
    """After a resume by hand, `status` asked for `triggers run`, which did the work again."""
    app = App.open(shell.folder, environ={})
    app.make_store()
    record_failure(app, "run-7", DUE)
    failed(shell, Result.FAILED)
    record_failure(app, "run-8", DUE + MINUTE, status)
    found = {each["trigger"]: each for each in shell.json("status")["triggers"]}["nightly"]
    assert (found["state"], found["do"]) == ("waiting", [])
    app.close()


@pytest.mark.parametrize("lane", [NIGHTLY, Lane("arrivals", "orders")], ids=["job", "entity"])
def test_a_trigger_that_failed_because_of_a_slice_is_told_with_its_resolve_first(
    shell: InProcess, lane: Lane
) -> None:
    """`triggers run` alone failed again: the slice waited for somebody."""
    app = App.open(shell.folder, environ={})
    app.make_store()
    (new,) = discover(app, "orders", ["1.csv"])
    item = fail(app, new)
    run = Run("run-7", "shop", "gold", "BUILD", {}, DUE, app.holder, "FAILED", DUE)
    app.journal.start_run(run, (Want("shop", "gold", {}, {(Phase.BUILD, "load"): "run-7"}).put,))
    entry = {
        "name": "load",
        "phase": "BUILD",
        "status": "FAILED",
        "reasons": [],
        "failed_items": [item.item_id],
    }
    app.journal.record_targets(run, {0: {**entry, "instance": {}, "error": {"message": "damaged"}}})
    failed(shell, Result.FAILED, lane)
    resolve, again = "lakewright manifest resolve orders/1.csv", f"lakewright triggers run {lane.trigger}"
    assert f"do: mend the cause, then `{resolve}`, then `{again}`" in " ".join(
        shell.run("status").out.split()
    )
    found = {each["trigger"]: each for each in shell.json("triggers")}
    assert found[lane.trigger]["do"] == [resolve, again]

    app.ledger.resolve(item.item_id, "mended")
    assert {each["trigger"]: each for each in shell.json("triggers")}[lane.trigger]["do"] == [again]
    app.close()


def test_a_run_that_is_asked_for_is_due_and_says_that_no_server_runs(shell: InProcess) -> None:
    failed(shell, Result.FAILED)
    done = shell.run("triggers", "run", "nightly", "-o", "json")
    assert (done.code, '"state": "due"' in done.out) == (0, True)
    assert "lakewright serve" in done.err
    assert shell.run("triggers", "run", "later").code == 2
    wrong = shell.run("triggers", "run", "nihgtly")
    assert wrong.code == 2
    assert "nightly" in wrong.err


def test_a_paused_trigger_is_told_until_it_is_resumed(shell: InProcess) -> None:
    (paused,) = shell.json("triggers", "pause", "arrivals")
    assert paused["state"] == "paused"
    assert "lakewright triggers resume arrivals" in shell.run("status").out
    (resumed,) = shell.json("triggers", "resume", "arrivals")
    assert resumed["state"] == "waiting"


def test_a_run_of_a_paused_trigger_is_said_to_begin_once_it_is_resumed(shell: InProcess) -> None:
    """It did nothing, and exited with 0."""
    shell.run("triggers", "pause", "arrivals")
    told = " ".join(shell.run("triggers", "run", "arrivals").out.split())
    assert "a run is due, and begins once it is resumed" in told
    assert "do: `lakewright triggers resume arrivals`" in told
    found = {each["trigger"]: each for each in shell.json("triggers")}["arrivals"]
    assert (found["state"], found["do"]) == ("paused", ["lakewright triggers resume arrivals"])
    (resumed,) = shell.json("triggers", "resume", "arrivals")
    assert (resumed["state"], resumed["is_paused"], resumed["do"]) == ("due", False, [])


def test_a_trigger_that_was_paused_during_its_run_is_running_until_that_ends(shell: InProcess) -> None:
    app = App.open(shell.folder, environ={})
    app.make_store()
    running = TriggerState(pending=(DUE,)).start(DUE).paused(True)
    TriggerRecords(app.store, "shop").change(NIGHTLY, lambda _: running)
    found = {each["trigger"]: each for each in shell.json("triggers")}["nightly"]
    assert (found["state"], found["do"]) == ("paused", ["lakewright triggers resume nightly"])

    app.leases().acquire("trigger shop/nightly")
    found = {each["trigger"]: each for each in shell.json("triggers")}["nightly"]
    assert (found["state"], found["is_paused"]) == ("running", True)
    told = " ".join(shell.run("status").out.split())
    assert "paused: it begins no further run until it is resumed" in told
    app.close()


def test_the_list_names_the_server_that_runs_a_trigger(shell: InProcess) -> None:
    app = App.open(shell.folder, environ={})
    app.make_store()
    leases: Leases = app.leases()
    leases.acquire("trigger shop/nightly")
    app.close()
    _, nightly, _ = shell.json("triggers")
    assert f"process {leases.holder.pid}" in nightly["held_by"]


def test_the_history_names_the_trigger_and_plan_tells_when_the_job_runs_by_itself(shell: InProcess) -> None:
    assert "Next nightly: job gold build" in shell.run("plan", "gold", "build").err
    assert shell.run("job", "gold", "build", LAKEWRIGHT_TRIGGER="nightly").code == 0
    (run,) = shell.json("history")
    assert run["trigger"] == "nightly"
    assert "begun by the trigger nightly" in shell.run("history", "show", run["run_id"]).out


def test_the_graph_shows_which_targets_a_trigger_starts_with(shell: InProcess) -> None:
    module = shell.folder / "module.yml"
    text = module.read_text().replace("targets: nothing}}", "targets: [nothing, load]}}")
    module.write_text(text.replace("kind: empty}}", "kind: empty}, load: {kind: entity, entity: orders}}"))
    arrivals, nightly, later = shell.json("graph", "gold")["triggers"]
    assert (arrivals["name"], arrivals["runs"], arrivals["starts"]) == (
        "arrivals",
        "process orders",
        ["load"],
    )
    assert arrivals["when"] == "arrival of slices of orders"
    assert (nightly["runs"], set(nightly["starts"])) == ("job gold build", {"nothing", "load"})
    assert (nightly["enabled"], later["enabled"]) == (True, False)
    shown = shell.run("graph", "gold").out
    assert "trigger nightly (15 3 * * * Europe/Amsterdam) runs `lakewright job gold build`" in shown
    assert "trigger later (@daily UTC, disabled)" in shown
    assert (
        'g1>"nightly: 15 3 * * * Europe/Amsterdam"]' in shell.run("graph", "gold", "--format", "mermaid").out
    )
    dot = shell.run("graph", "gold", "build", "--format", "dot").out
    assert 'trigger0 -> "load" [style=dashed];' in dot


def test_records_of_a_slice_name_the_trigger_that_started_the_run(shell: InProcess) -> None:
    app = App.open(shell.folder, environ={"LAKEWRIGHT_TRIGGER": "arrivals"})
    done, broken, _ = discover(app, "orders", ["1", "2", "3"])
    process(app, done)
    fail(app, broken)
    app.close()
    listed = {row["slice"]: row["trigger"] for row in shell.json("manifest", "ls")}
    assert listed == {"1": "arrivals", "2": "arrivals", "3": None}
    assert "begun by arrivals" in shell.run("manifest", "ls", "--state", "processed").out
    shown = shell.run("manifest", "show", "orders/1").out.splitlines()
    assert [", begun by arrivals" in each for each in shown if " for lakewright/" in each][1:] == [
        False,
        True,
        True,
    ]
    states = {
        each["state"]: each["payload"]["data"].get("trigger")
        for each in shell.json("manifest", "show", "orders/2")["records"]
    }
    assert states == {"NEW": None, "PROCESSING": "arrivals", "FAILED": "arrivals"}
