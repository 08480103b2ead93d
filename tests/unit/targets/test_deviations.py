"""Processed slices that change, and slices that can't be read, are not passed over in silence (A2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from deltalake import write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.silver import make_empty_silver, pa, sign_last_commit
from tests.unit.run.test_execute import Recorder

from lakewright.errors import Fault, SliceError, StorageUnavailable, VerificationError
from lakewright.manifest.payload import failure
from lakewright.manifest.verdict import Verdict
from lakewright.plan.dirtiness import entity_dirtiness
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Candidate, Instance, PlanRequest, build_plan
from lakewright.plan.reason import Code, note
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Step, done_reasons
from lakewright.run.execution import ExecutionOptions, execute
from lakewright.run.hooks.notifier import _alerts
from lakewright.schema.fault import Fault as RowFault
from lakewright.schema.fault import Reason
from lakewright.slices.application import application_of
from lakewright.slices.discovery import BRONZE_UNREADABLE, discovered, list_slices
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.result import SliceReport
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.reason import Reason as StepReason
from lakewright.strategies.bad_rows import BadRow, message_with_rows, rows_text
from lakewright.targets.context import Context
from lakewright.targets.entity.work import EntityWork
from lakewright.targets.target import Target

PROJECT = """
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    settings: {{changed_slices: {policy}, late_slices: {late}}}
    columns: [{{name: id, fieldroles: [businesskey]}}]
targets:
  orders: {{kind: entity, entity: orders}}
"""
NOW = datetime(2022, 1, 1, tzinfo=UTC)
SLICES_CHANGED = "slices_changed"
NAMES = ("2022-1", "2022-2", "2022-10")


def write(bronze: Path, name: str, *ids: int) -> None:
    bronze.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"id": ids}).to_parquet(bronze / name)


def processed(
    folder: Path, policy: str = "hold", late: str = "hold", *names: str, strategy: str = "merge"
) -> Context:
    """Return a lake whose slices are processed, into a table without rows."""
    make_empty_silver(folder / "lake/silver/orders", strategy)
    bronze = folder / "lake/bronze/orders"
    for name in names or NAMES:
        write(bronze, name, 1)
    workspace = make_workspace(folder, PROJECT.format(policy=policy, late=late).replace("merge", strategy))
    context = make_context(workspace)
    application = application_of("tests", workspace.entity("orders"))
    slices = list_slices(SliceFolder(str(bronze)), workspace.lake)
    for item in context.ledger.discover(discovered(slices, application, "orders")).new:
        claim = context.ledger.acquire(
            item.item_id,
            application,
            context.leases.holder,
            duration=context.leases.duration,
            token_counter="t",
        )
        context.ledger.processed(claim, {"delta_version": None})
    return context


def observed(context: Context) -> Observation:
    return Target.named(context.workspace, "orders").observe(context)


def built(context: Context) -> Outcome:
    """Return the outcome of BUILD where no slice is ready."""
    return Target.named(context.workspace, "orders").execute(context, Phase.BUILD)


def verdicts(context: Context) -> dict[str, Verdict]:
    workspace = context.workspace
    application = application_of("tests", workspace.entity("orders"))
    bronze = Path(workspace.entity("orders").places(workspace.lake.settings).bronze)
    items = {name: context.ledger.item((bronze / name).as_uri()) for name in NAMES}
    return {name: item.verdict(application) for name, item in items.items()}


def fault_of(found: Observation) -> Fault:
    assert found.warning is not None
    return found.warning


def test_a_changed_slice_is_told_with_the_command_to_type_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    assert observed(context).warning is None
    write(tmp_path / "lake/bronze/orders", "2022-2", 1, 2)

    fault = fault_of(observed(context))

    assert fault.message == "orders: the files of 2022-2 have changed since it was processed"
    assert fault.remedy == (
        "Choose `take` or `keep`: `lakewright decide orders/2022-2 take`, then `lakewright apply`."
    )
    assert fault.details == {"alerts": [SLICES_CHANGED], "slices": ["2022-2"]}
    outcome = built(context)
    assert (outcome.status, outcome.error) == (Status.SUCCESS_WITH_ERRORS, fault)


def test_the_entity_may_ignore_changed_slices_a2(tmp_path: Path) -> None:
    context = processed(tmp_path, "keep")
    write(tmp_path / "lake/bronze/orders", "2022-2", 1, 2)
    assert observed(context).warning is None


@pytest.mark.parametrize("late", ["hold", "end"])
def test_a_run_leaves_a_changed_slice_to_apply_a2(tmp_path: Path, late: str) -> None:
    """Rules of applying, "Laws": a run applied it on top, where `apply` puts it in its place."""
    context = processed(tmp_path, "take", late)
    write(tmp_path / "lake/bronze/orders", "2022-2", 1, 2)

    found = observed(context)

    assert found.pending == ()
    fault = fault_of(found)
    assert (fault.code, fault.remedy) == (SLICES_CHANGED, "`lakewright apply` takes it.")
    assert built(context).status is Status.SUCCESS_WITH_ERRORS
    assert set(verdicts(context).values()) == {Verdict.PROCESSED}


def test_links_to_nothing_and_unreadable_folders_are_told_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    bronze = tmp_path / "lake/bronze/orders"
    (bronze / "2022-3").symlink_to(tmp_path / "nowhere")
    (bronze / "2022-4").mkdir()
    (bronze / "2022-4" / "part").symlink_to(tmp_path / "nowhere")
    (bronze / "2022-5").mkdir()
    (bronze / "2022-5" / "loop").symlink_to(bronze / "2022-5")

    fault = fault_of(observed(context))

    link = f"{bronze}/2022-3 is a link to {tmp_path}/nowhere, which does not exist"
    assert f"orders: 2022-3 can't be read: {link}; " in fault.message
    assert "2022-4/part is a link to" in fault.message
    assert "2022-5 can't be read: " in fault.message
    assert fault.details == {"alerts": [BRONZE_UNREADABLE], "slices": ["2022-3", "2022-4", "2022-5"]}


def test_a_slice_with_linked_folders_has_their_files_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, "part", 1)
    (tmp_path / "lake/bronze/orders/2022-11").mkdir()
    (tmp_path / "lake/bronze/orders/2022-11/day=1").symlink_to(elsewhere)
    assert observed(context).pending == ("2022-11",)


def test_a_bronze_folder_that_cannot_be_read_is_no_empty_one_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    bronze = tmp_path / "lake/bronze/orders"
    bronze.rename(tmp_path / "moved")
    bronze.write_text("a file")
    with pytest.raises(
        StorageUnavailable, match=r"the bronze folder .*orders can't be read: a file stands there"
    ):
        observed(context)


def test_a_bronze_folder_is_missed_once_slices_from_it_were_processed_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    bronze = tmp_path / "lake/bronze/orders"
    bronze.rename(tmp_path / "moved")
    fault = fault_of(observed(context))
    assert fault.message == f"the bronze folder {bronze} of orders is gone; slices from it are recorded"


def test_a_bronze_folder_that_is_not_mounted_fails_no_slice_and_is_told_a2(tmp_path: Path) -> None:
    """B2: the slice failed, and had to be resolved once the disk was back; `status` said nothing of it."""
    bronze = tmp_path / "lake/bronze/orders"
    write(bronze, "2022-2", 1)
    workspace = make_workspace(tmp_path, PROJECT.format(policy="hold", late="hold"))
    context = make_context(workspace)
    assert observed(context).warning is None
    processing = EntityWork(context, workspace.entity("orders"), "orders").processing
    find_pending(processing, workspace.entity("orders"))
    bronze.rename(tmp_path / "moved")

    found = observed(context)
    said = f"the bronze folder {bronze} of orders is gone; slices from it are recorded"
    assert fault_of(found).message == said
    assert (found.pending, found.notes) == (("2022-2",), ())
    outcome = built(context)
    assert outcome.error is not None
    assert outcome.error.message.startswith(f"the slice 2022-2 can't be read: there is no folder {bronze}")
    assert outcome.error.remedy == "Mount it, or correct bronze_path."
    item = context.ledger.item((bronze / "2022-2").as_uri())
    assert item.verdict(processing.application) is Verdict.READY


def test_a_fresh_project_waits_for_its_first_slice_a2(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT.format(policy="hold", late="hold"))
    context = make_context(workspace)
    bronze = tmp_path / "lake/bronze/orders"
    found = observed(context)
    assert found.warning is None
    orders = Target.named(workspace, "orders")
    clean = orders.dirtiness(Phase.BUILD, found, context.defaults)
    assert clean.reasons == (StepReason(Code.NO_FOLDER, {"folder": str(bronze)}),)
    bronze.mkdir(parents=True)
    assert str(observed(context).idle) == f"no slice has arrived in {bronze}"


def test_a_skipped_slice_that_was_corrected_is_told_by_the_plan_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    bronze = tmp_path / "lake/bronze/orders"
    write(bronze, "2022-11", 1)
    entity = context.workspace.entity("orders")
    application = application_of("tests", entity)
    found = discovered(list_slices(SliceFolder(str(bronze)), context.workspace.lake), application, "orders")
    context.ledger.discover(found)
    context.ledger.skip((bronze / "2022-11").as_uri(), "wrong rows")
    idle = StepReason(Code.OTHERS_SKIPPED, {"number": 1, "is_part": False})
    assert str(idle) == "every slice has been processed, except one that is skipped"
    assert observed(context).idle == idle
    assert observed(context).notes == ()
    assert built(context).reasons == (idle,)
    write(bronze, "2022-11", 1, 2)
    (noted,) = observed(context).notes
    assert str(noted) == (
        "2022-11 is skipped, and its files have changed since. Choose `take` or `keep`: "
        "`lakewright decide orders/2022-11 take`, then `lakewright apply`."
    )
    assert noted in built(context).reasons


def test_a_target_whose_slices_have_not_arrived_says_so(tmp_path: Path) -> None:
    """The slices of other days do not count as those of the day."""
    context = processed(tmp_path)
    write(tmp_path / "lake/bronze/orders", "2022-11", 1)
    declared = PROJECT.format(policy="hold", late="hold")
    for pattern, reason in (
        ("2022-12*", "bronze has no slice that it takes (slices: 2022-12*)"),
        ("2022-1", "every slice that it takes has been processed"),
    ):
        limited = declared.replace("entity: orders}", f"entity: orders, slices: '{pattern}'}}")
        orders = Target.named(make_workspace(tmp_path, limited), "orders")
        clean = orders.dirtiness(Phase.BUILD, orders.observe(context), context.defaults)
        assert [str(each) for each in clean.reasons] == [reason]


def test_slices_that_the_run_would_fail_because_of_their_files_are_told_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    bronze = tmp_path / "lake/bronze/orders"
    for name in ("2022-11", "2022-12", "2022-13", "2022-14"):
        write(bronze, name, 1)
    (bronze / "2022-12").write_bytes(b"")
    application = application_of("tests", context.workspace.entity("orders"))
    context.ledger.discover(
        discovered(list_slices(SliceFolder(str(bronze)), context.workspace.lake), application, "orders")
    )
    assert observed(context).notes == (note("these will fail: the slice 2022-12 has 0 bytes"),)
    write(bronze, "2022-13", 1, 2)
    (bronze / "2022-14").unlink()
    (noted,) = observed(context).notes
    assert str(noted) == (
        "these will fail: the slice 2022-12 has 0 bytes; "
        "the slice 2022-13 has changed since it was discovered; "
        f"the slice 2022-14 is gone from {bronze}"
    )


def test_a_folder_that_is_still_being_written_is_told_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    write(tmp_path / "lake/bronze/orders/2022-11/_temporary", "part", 1)
    write(tmp_path / "lake/bronze/orders/2022-11", "part", 1)
    assert observed(context).notes == (note("not complete yet: 2022-11"),)


def failed(context: Context, name: str, run_id: str = "an earlier one") -> None:
    """Add a slice that fails with a remedy, by default in another run."""
    workspace = context.workspace
    bronze = Path(workspace.entity("orders").places(workspace.lake.settings).bronze)
    write(bronze, name, 1)
    application = application_of("tests", workspace.entity("orders"))
    context.ledger.discover(
        discovered(list_slices(SliceFolder(str(bronze)), workspace.lake), application, "orders")
    )
    claim = context.ledger.acquire(
        (bronze / name).as_uri(),
        application,
        replace(context.leases.holder, run_id=run_id),
        duration=context.leases.duration,
        token_counter="t",
    )
    context.ledger.failed(claim, failure(SliceError("key 1 occurs twice", remedy="Correct the slice.")))


def test_a_changed_slice_is_told_beside_a_failed_one_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    write(tmp_path / "lake/bronze/orders", "2022-10", 1, 2)
    failed(context, "2022-11")

    found = observed(context)

    assert found.hold is not None
    assert "key 1 occurs twice" in found.hold.error.message
    assert str(found.hold.error.remedy).startswith("Correct the slice. Then `lakewright manifest resolve ")
    changed = "orders: the files of 2022-10 have changed since it was processed"
    assert fault_of(found).message == changed
    outcome = built(context)
    assert outcome.status.is_failure
    assert outcome.error is not None
    assert outcome.error.message.splitlines()[1:] == [changed]
    assert "decide orders/2022-10 take`" in str(outcome.error.remedy)
    assert outcome.error.details["alerts"] == [SLICES_CHANGED]


def test_what_holds_later_slices_back_is_told_where_earlier_ones_are_ready(tmp_path: Path) -> None:
    context = processed(tmp_path)
    failed(context, "2022-12")
    write(tmp_path / "lake/bronze/orders", "2022-11", 1)
    found = observed(context)
    assert found.pending == ("2022-11",)
    assert "orders/2022-12 failed at" in fault_of(found).message


def test_slices_that_are_gone_after_truncate_are_told_a2(tmp_path: Path) -> None:
    context = processed(tmp_path)
    orders = Target.named(context.workspace, "orders")
    orders.execute(context, Phase.DESTROY)
    for name in ("2022-2", "2022-10"):
        (tmp_path / "lake/bronze/orders" / name).unlink()

    found = observed(context)

    assert found.pending == ("2022-1",)
    assert fault_of(found).message == (
        "orders: 2022-2 is to be processed, and is gone from bronze; "
        "2022-10 is to be processed, and is gone from bronze"
    )
    assert "`lakewright decide orders/2022-2 skip`" in str(fault_of(found).remedy)


@pytest.mark.parametrize(("strategy", "is_held"), [("merge", True), ("full", False)])
def test_slices_after_one_that_is_gone_wait_unless_they_replace_it_a2(
    tmp_path: Path, strategy: str, is_held: bool
) -> None:
    """A run took them, where a plan asks about the one that is gone."""
    context = processed(tmp_path, strategy=strategy)
    Target.named(context.workspace, "orders").execute(context, Phase.DESTROY)
    (tmp_path / "lake/bronze/orders/2022-2").unlink()
    found = observed(context)
    assert found.pending == (("2022-1",) if is_held else ("2022-1", "2022-10"))
    assert (found.warning is not None) is is_held
    if is_held:
        assert fault_of(found).details["slices"] == ["2022-2"]


def test_a_clean_step_with_a_warning_ends_with_errors_in_one_instance_only_a2() -> None:
    fault = Fault("changed", code=SLICES_CHANGED, details={"alerts": [SLICES_CHANGED, BRONZE_UNREADABLE]})
    found = Observation("table:orders", warning=fault)
    node = Node("orders", requires=frozenset(), provides=frozenset())
    candidate = Candidate(
        "orders", "entity", {Phase.BUILD: node}, lambda: found, lambda _, seen: entity_dirtiness(seen)
    )
    instances = [Instance({"day": day}, (candidate,)) for day in "12"]
    plan = build_plan("p", "j", instances, PlanRequest((Phase.BUILD,)), count=2)
    assert [(step.status, step.warning) for step in plan.steps()] == [
        (Planned.CLEAN, fault),
        (Planned.CLEAN, None),
    ]
    assert plan.has_work is False

    recorder = Recorder()
    options = ExecutionOptions("r", lambda *_: Outcome(), lambda: NOW, recorder, recorder)
    result = execute(plan, options)

    first, second = result.targets()
    assert (first.status, first.error) == (Status.SUCCESS_WITH_ERRORS, fault)
    assert second.status is Status.SKIPPED
    assert (result.status, result.exit_code, recorder.performed) == (Status.SUCCESS_WITH_ERRORS, 0, [])
    assert list(_alerts(first)) == [SLICES_CHANGED, BRONZE_UNREADABLE]


def test_a_slice_that_stays_ready_is_not_called_failed() -> None:
    error = StorageUnavailable("the disk is full")
    told = SliceReport("orders", "s1", "file:///s1", error=error, is_failed=False)
    assert str(told) == "orders: slice s1 was not processed and stays ready: the disk is full"
    assert str(replace(told, is_failed=True)) == "orders: slice s1 failed: the disk is full"


def test_the_reason_of_a_bad_row_is_not_said_twice() -> None:
    row = BadRow(RowFault(Reason.NULL_KEY, "day"), "/lake/s1.csv", key={"id": "1"}, record="1,x")
    told = "id=1: column 'day' of the business key is null"
    assert message_with_rows("no date", row.fault, [row]) == "no date, in id=1"
    assert message_with_rows("it failed", None, [row]) == f"it failed; rows: {told}"
    assert rows_text([row]) == told


def test_a_run_says_what_it_has_processed_in_the_past_tense() -> None:
    tainted = StepReason(Code.TAINTED, {"target": "base"})
    reasons = (StepReason(Code.PENDING, {"slices": ("a", "b")}), tainted)
    step = Step(Phase.BUILD, "orders", "entity", Planned.WOULD_RUN, reasons, slices=("a", "b"))
    assert done_reasons(step, ["a", "b"]) == (StepReason(Code.PROCESSED, {"slices": ["a", "b"]}), tainted)
    # One that arrived during the run, or that another run has processed meanwhile.
    assert done_reasons(step, ["a", "b", "c"]) == (
        StepReason(Code.PROCESSED, {"slices": ["a", "b", "c"]}),
        tainted,
    )
    assert done_reasons(step, ["b"]) == (StepReason(Code.PROCESSED, {"slices": ["b"]}), tainted)


def test_processed_slices_that_were_removed_from_bronze_are_counted(tmp_path: Path) -> None:
    context = processed(tmp_path)
    (tmp_path / "lake/bronze/orders/2022-1").unlink()
    found = observed(context)
    assert str(*found.notes) == "processed, but no longer in bronze: 2022-1. `lakewright manifest discover`"
    assert (found.warning, found.pending) == (None, ())


AFTER = PROJECT.replace("processtype: merge", "processtype: merge\n    after: [acme/scanner]")


@pytest.mark.parametrize(
    ("declared", "slices", "cause"),
    [
        (AFTER, ("2022-1", "2022-2"), "2 slices, from 2022-1 on, wait for acme/scanner"),
        (PROJECT, (), "no slice has arrived: there is no folder"),
        (PROJECT, ("2022-1",), "not processed yet: 2022-1"),
        (
            PROJECT.replace("entity: orders}}", "entity: orders, slices: 2023*}}"),
            ("2022-1",),
            "bronze has no slice that it takes (slices: 2023*)",
        ),
    ],
)
def test_verify_says_why_there_is_no_table(
    tmp_path: Path, declared: str, slices: tuple[str, ...], cause: str
) -> None:
    for name in slices:
        write(tmp_path / "lake/bronze/orders", name, 1)
    context = make_context(make_workspace(tmp_path, declared.format(policy="hold", late="hold")))
    orders = Target.named(context.workspace, "orders")
    with pytest.raises(VerificationError) as caught:
        orders.execute(context, Phase.VERIFY)
    assert f"there is no table at {tmp_path}/lake/silver/orders: {cause}" in caught.value.message
    assert "`lakewright plan` shows" in str(caught.value.remedy)
    assert context.ledger.store.counts() == {}


def test_verify_names_the_failed_slice_that_keeps_the_table_from_being_made(tmp_path: Path) -> None:
    write(tmp_path / "lake/bronze/orders", "2022-1", 1)
    context = make_context(make_workspace(tmp_path, PROJECT.format(policy="hold", late="hold")))
    failed(context, "2022-1")
    with pytest.raises(VerificationError, match=r"orders/2022-1 failed at .*: key 1 occurs twice"):
        Target.named(context.workspace, "orders").execute(context, Phase.VERIFY)


def test_a_slice_that_failed_in_validate_is_named_in_build_with_its_error(tmp_path: Path) -> None:
    """C3: by the slice's name instead of its address. Only the report of the run leaves the cause out."""
    write(tmp_path / "lake/bronze/orders", "2022-1", 1)
    context = make_context(make_workspace(tmp_path, PROJECT.format(policy="hold", late="hold")))
    failed(context, "2022-1", context.run_id)
    outcome = Target.named(context.workspace, "orders").execute(context, Phase.BUILD)
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.message == "orders/2022-1 failed earlier in this run: key 1 occurs twice"
    assert "`lakewright manifest resolve orders/2022-1`" in str(outcome.error.remedy)


def test_the_plan_says_that_verify_fails_as_long_as_nothing_makes_the_table(tmp_path: Path) -> None:
    write(tmp_path / "lake/bronze/orders", "2022-1", 1)
    reasons = {}
    for name, declared in (("waits", AFTER), ("ready", PROJECT)):
        context = make_context(make_workspace(tmp_path, declared.format(policy="hold", late="hold")))
        orders = Target.named(context.workspace, "orders")
        found = orders.dirtiness(Phase.VERIFY, orders.observe(context), context.defaults)
        reasons[name] = [each.code for each in found.reasons]
    assert reasons == {
        "waits": [Code.ALWAYS_RUNS, Code.FAILS_WITHOUT_TABLE],
        "ready": [Code.ALWAYS_RUNS],
    }


@pytest.mark.parametrize(
    ("strategy", "late", "sequence"),
    [("historic", "end", True), ("historic", "hold", False), ("merge", "hold", False)],
)
def test_the_plan_says_that_a_late_slice_is_refused(
    tmp_path: Path, strategy: str, late: str, sequence: bool
) -> None:
    make_empty_silver(tmp_path / "lake/silver/orders", strategy)
    store = processed(tmp_path, late=late).ledger.store
    write(tmp_path / "lake/bronze/orders", "2022-1b", 1)
    declared = PROJECT.replace("merge", strategy)
    declared = declared.replace("late_slices:", "sequence_by: n, late_slices:") if sequence else declared
    context = make_context(
        make_workspace(tmp_path, declared.format(policy="hold", late=late)), store=store, run_id="later"
    )
    found = observed(context)
    assert found.pending == ("2022-1b",)
    decide = "Choose `place`, `end` or `skip`: `lakewright decide orders/2022-1b place`"
    refused = f"2022-1b is late: the run refuses it. {decide}, then `lakewright apply`."
    assert (refused in map(str, found.notes)) == (late == "hold")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("delete_missing: true, delete_scope: full", "also deletes records that only later slices have"),
        ("delete_missing: true, delete_scope: full, sequence_by: n", "no deletes are inferred"),
        ("delete_scope: full", None),
    ],
)
def test_the_plan_says_what_a_late_slice_does_to_records_that_it_lacks(
    tmp_path: Path, settings: str, told: str | None
) -> None:
    """A late slice that is taken for the whole source deletes what came after it; nothing said so."""
    store = processed(tmp_path, late="end").ledger.store
    write(tmp_path / "lake/bronze/orders", "2022-1b", 1)
    declared = PROJECT.replace("late_slices:", f"{settings}, late_slices:")
    context = make_context(
        make_workspace(tmp_path, declared.format(policy="hold", late="end")), store=store, run_id="later"
    )
    notes = [
        note for note in map(str, observed(context).notes) if "delete" in note and "whose delete" not in note
    ]
    assert len(notes) == (told is not None)
    if told is not None:
        assert notes[0].startswith("2022-1b is late: with ")
        assert notes[0].endswith((told, f"{told} from a late slice"))


def test_rows_that_another_program_changed_are_told_until_a_slice_is_processed(tmp_path: Path) -> None:
    """The plan and the run warn; a table that TRUNCATE emptied is no news."""
    context = processed(tmp_path)
    silver = tmp_path / "lake/silver/orders"
    sign_last_commit(silver)
    assert observed(context).warning is None
    write_deltalake(silver, pa.table({"id": [1]}), mode="append")

    fault = fault_of(observed(context))

    assert fault.message.startswith(
        "rows of orders were changed by another program since Lakewright's last commit: version 1 of 20"
    )
    assert fault.message.endswith(" UTC (WRITE)")
    assert fault.remedy is not None
    assert "`lakewright rebuild orders --over-foreign` makes the table again from its slices" in fault.remedy
    outcome = built(context)
    assert (outcome.status, outcome.error) == (Status.SUCCESS_WITH_ERRORS, fault)

    write(tmp_path / "lake/bronze/orders", "2022-2", 1, 2)
    both = fault_of(observed(context)).message.splitlines()
    assert both == [fault.message, "orders: the files of 2022-2 have changed since it was processed"]

    truncated = make_context(make_workspace(tmp_path, PROJECT.format(policy="hold", late="hold")))
    assert observed(truncated).warning is None


@pytest.mark.parametrize("late", ["hold", "end"])
def test_a_slice_is_late_also_if_the_later_ones_have_left_bronze(tmp_path: Path, late: str) -> None:
    """It was applied as the newest one: its older rows replaced newer ones."""
    context = processed(tmp_path, late=late)
    bronze = tmp_path / "lake/bronze/orders"
    for name in NAMES:
        (bronze / name).unlink()
    for name in ("2022-3", "2022-11"):
        write(bronze, name, 1)

    found = observed(context)

    assert found.pending == ("2022-3", "2022-11")
    refused = (
        "2022-3 is late: the run refuses it. Choose `place`, `end` or `skip`: "
        "`lakewright decide orders/2022-3 place`, then `lakewright apply`."
    )
    assert (refused in map(str, found.notes)) == (late == "hold")
    pending = find_pending(
        EntityWork(context, context.workspace.entity("orders"), "orders").processing,
        context.workspace.entity("orders"),
    )
    assert [item.rpartition("/")[2] for item in pending.late] == ["2022-3"]
