from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import LakeMoved, SpecError, TargetError
from lakewright.lake.delta_log import TableState
from lakewright.manifest.store import Query
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code, note
from lakewright.plan.status import Status
from lakewright.run.planning import node_of
from lakewright.schema.canonical import HASH_VERSION
from lakewright.slices.application import application_of
from lakewright.slices.discovery import discovered, list_slices
from lakewright.spec.models.fields import Field, parse_type
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.reason import Reason
from lakewright.stores.memory import MemoryStore
from lakewright.targets.context import Context
from lakewright.targets.entity.observation import new_comments
from lakewright.targets.target import Target
from lakewright.upkeep.relocation import relocate
from lakewright.workspace.workspace import Workspace

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    settings: {table_properties: {delta.appendOnly: "false"}}
    columns: [{name: id, fieldroles: [businesskey]}]
  unused:
    id: 2
    enabled: false
    connection: shop
    processtype: full
targets:
  orders: {kind: entity, entity: orders, processingTime: 2022-01-01}
  unused: {kind: entity, entity: unused}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for month in ("2022-10", "2022-9"):
        folder = tmp_path / "lake/bronze/orders"
        folder.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"id": [1]}).to_parquet(folder / month)
    return make_workspace(tmp_path, PROJECT)


@pytest.fixture
def context(workspace: Workspace) -> Context:
    return make_context(workspace)


def test_an_entity_target_requires_slices_and_provides_the_silver_table(
    tmp_path: Path, workspace: Workspace
) -> None:
    orders = Target.named(workspace, "orders")
    for phase in Phase:
        required = [str(each) for each in orders.requires(workspace, phase)]
        provided = [str(each) for each in orders.provides(workspace, phase)]
        reads = phase not in (Phase.CREATE, Phase.VERIFY)
        writes = phase not in (Phase.VALIDATE, Phase.VERIFY)
        assert required == ([f"file:{tmp_path}/lake/bronze/orders/*"] if reads else []), phase
        assert provided == ([f"file:{tmp_path}/lake/silver/orders"] if writes else []), phase


@pytest.mark.parametrize("application", ["lakewright/tests/orders", "lakewright/tests/orders:orders"])
def test_an_entity_runs_after_those_that_must_process_its_slices_before(
    tmp_path: Path, application: str
) -> None:
    lines = f"  lines: {{id: 3, connection: shop, processtype: full, after: '{application}'}}\ntargets:\n"
    declared = PROJECT.replace("targets:\n", lines, 1)
    declared += "  lines: {kind: entity, entity: lines, after: unused}\n"
    workspace = make_workspace(tmp_path, declared)

    node = node_of(Target.named(workspace, "lines"), workspace, Phase.BUILD)

    assert node.after == ("unused", "orders")
    assert node_of(Target.named(workspace, "orders"), workspace, Phase.BUILD).after == ()


def test_observing_finds_new_slices_without_recording_them(context: Context) -> None:
    found = Target.named(context.workspace, "orders").observe(context)
    assert found.pending == ("2022-9", "2022-10")
    assert (found.exists, found.filled, found.hold) == (Answer.NO, Answer.NO, None)
    store = context.ledger.store
    assert isinstance(store, MemoryStore)
    assert store.counts() == {}


@pytest.mark.parametrize(
    ("phase", "found", "verdict", "code"),
    [
        (Phase.VALIDATE, Observation("x", pending=("a",)), Answer.YES, Code.ALWAYS_RUNS),
        (Phase.VALIDATE, Observation("x"), Answer.NO, Code.NONE_TO_CHECK),
        (Phase.CREATE, Observation("x", exists=Answer.NO), Answer.NO, Code.MADE_BY_SLICE),
        (Phase.CREATE, Observation("x", exists=Answer.YES), Answer.NO, Code.CONFORMS),
        (Phase.BUILD, Observation("x", pending=("a", "b")), Answer.YES, Code.PENDING),
        (Phase.BUILD, Observation("x", pending=("a",), notes=(note("no 1"),)), Answer.YES, Code.PENDING),
        (Phase.BUILD, Observation("x", exists=Answer.NO), Answer.NO, Code.ALL_PROCESSED),
        (Phase.DESTROY, Observation("x", exists=Answer.YES), Answer.YES, Code.PRESENT),
    ],
)
def test_an_entity_target_is_dirty_if_there_are_slices_to_process(
    context: Context, phase: Phase, found: Observation, verdict: Answer, code: Code
) -> None:
    dirtiness = Target.named(context.workspace, "orders").dirtiness(phase, found, context.defaults)
    assert dirtiness.verdict is verdict
    assert dirtiness.reasons[0].code is code


def test_a_failed_slice_blocks_later_slices(context: Context) -> None:
    workspace = context.workspace
    entity = workspace.entity("orders")
    application = application_of("tests", entity)
    bronze = entity.places(workspace.lake.settings).bronze
    found = context.ledger.discover(
        discovered(list_slices(SliceFolder(bronze), workspace.lake), application, "orders")
    )
    first = context.ledger.acquire(
        found.new[0].item_id,
        application,
        context.leases.holder,
        duration=context.leases.duration,
        token_counter="t",
    )
    locked = Target.named(workspace, "orders").observe(context)
    assert locked.hold is not None
    assert locked.hold.is_locked
    context.ledger.failed(first, {"error": {"message": "no good"}})
    held = Target.named(workspace, "orders").observe(context)
    assert (held.pending, held.waiting) == ((), ("2022-10",))
    assert held.hold is not None
    assert not held.hold.is_locked
    assert "orders/2022-9 failed" in held.hold.error.message


def test_damaged_slices_fail_before_anything_is_built(tmp_path: Path, context: Context) -> None:
    slice_ = tmp_path / "lake/bronze/orders/2022-9"
    slice_.write_bytes(slice_.read_bytes()[:-20])
    orders = Target.named(context.workspace, "orders")
    checked = orders.execute(context, Phase.VALIDATE)
    assert checked.status is Status.SUCCESS_WITH_ERRORS
    assert checked.metrics == {"slices_ready": 1, "slices_waiting": 0, "slices_failed": 1}
    assert checked.reasons[0].code is Code.ERROR
    assert "the slice 2022-9 can't be read" in checked.reasons[0].params["why"]
    assert orders.observe(context).waiting == ("2022-10",)

    built = orders.execute(context, Phase.BUILD)
    assert built.status is Status.FAILED
    later = make_context(context.workspace, store=context.ledger.store, run_id="later")
    assert orders.execute(later, Phase.BUILD).status is Status.BLOCKED


def test_a_lost_table_of_processed_slices_blocks_its_build_and_is_told(context: Context) -> None:
    workspace = context.workspace
    entity = workspace.entity("orders")
    application = application_of("tests", entity)
    bronze = entity.places(workspace.lake.settings).bronze
    context.ledger.discover(
        discovered(list_slices(SliceFolder(bronze), workspace.lake), application, "orders")
    )
    item = next(iter(context.ledger.store.select(Query())))
    claim = context.ledger.acquire(
        item.item_id,
        application,
        context.leases.holder,
        duration=context.leases.duration,
        token_counter="t",
    )
    context.ledger.processed(claim, {})
    orders = Target.named(workspace, "orders")
    with pytest.raises(
        TargetError, match=r"such as 2022-10 as processed into .*silver/orders, but no table exists there"
    ):
        orders.execute(context, Phase.BUILD)
    lost = orders.observe(context)
    assert (lost.exists, lost.filled, lost.pending) == (Answer.NO, Answer.YES, ())
    assert lost.hold is not None
    assert "no table exists there" in lost.hold.error.message
    defaults = context.defaults
    assert orders.dirtiness(Phase.CREATE, lost, defaults).reasons[0].code is Code.TABLE_GONE
    for phase in (Phase.TRUNCATE, Phase.DESTROY):
        assert orders.dirtiness(phase, lost, defaults).is_to_run
    orders.execute(context, Phase.DESTROY)
    assert orders.observe(context).exists is Answer.NO
    assert orders.observe(context).pending == ("2022-9", "2022-10")


def test_a_disabled_entity_is_skipped(context: Context) -> None:
    unused = Target.named(context.workspace, "unused")
    assert not unused.dirtiness(Phase.CREATE, unused.observe(context), context.defaults).is_to_run
    for phase in Phase:
        outcome = unused.execute(context, phase)
        assert outcome.status is Status.SKIPPED
        assert outcome.reasons == (Reason(Code.DISABLED),)


def test_slices_processed_under_another_path_are_held_until_the_manifest_is_updated(
    tmp_path: Path, context: Context
) -> None:
    workspace = context.workspace
    entity, store = workspace.entity("orders"), context.ledger.store
    application = application_of("tests", entity)
    slices = list_slices(SliceFolder(str(tmp_path / "lake/bronze/orders")), workspace.lake)
    context.ledger.discover(discovered(slices, application, entity.name))
    for item in list(store.select(Query())):
        claim = context.ledger.acquire(
            item.item_id,
            application,
            context.leases.holder,
            duration=context.leases.duration,
            token_counter="x",
        )
        context.ledger.processed(claim, {"metrics": {}})
    shutil.copytree(tmp_path / "lake", tmp_path / "elsewhere" / "lake")
    there = make_context(make_workspace(tmp_path / "elsewhere", PROJECT), store=store)
    orders = Target.named(there.workspace, "orders")

    found = orders.observe(there)

    assert found.pending == ()
    assert found.hold is not None
    old, new = (f"file://{folder}/lake/bronze/orders" for folder in (tmp_path, tmp_path / "elsewhere"))
    assert f"`lakewright manifest move {old} {new}`" in str(found.hold.error.remedy)
    with pytest.raises(LakeMoved):
        orders.execute(there, Phase.VALIDATE)
    assert store.read([f"{new}/2022-9"]) == {}

    assert all(each.fault is None for each in relocate(store, old, new, map(str, itertools.count()).__next__))

    assert orders.observe(there).hold is None
    assert orders.observe(there).pending == ()


def lay_table(folder: Path, properties: dict[str, str]) -> None:
    """Write an empty table with properties."""
    field = {"type": "long", "nullable": True, "metadata": {}}
    fields = [{"name": name, **field} for name in ("id", "ident")]
    schema = {"type": "struct", "fields": fields}
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": properties,
            }
        },
    ]
    (folder / "_delta_log").mkdir(parents=True)
    text = "\n".join(json.dumps(action) for action in actions)
    (folder / "_delta_log/00000000000000000000.json").write_text(text)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"lakewright.strategy": "historic"}, "rows of the strategy historic"),
        ({}, "rows that Lakewright did not write"),
        ({"lakewright.strategy": "merge", "lakewright.hashVersion": "0"}, "hashes are of version 0"),
        (
            {
                "lakewright.strategy": "merge",
                "lakewright.hashVersion": HASH_VERSION,
                "lakewright.key": '{"number": "number"}',
            },
            "keyed by number, the slice's by id",
        ),
        (
            {
                "lakewright.strategy": "merge",
                "lakewright.hashVersion": HASH_VERSION,
                "lakewright.key": '{"id": "number"}',
            },
            None,
        ),
        (
            {
                "lakewright.strategy": "merge",
                "lakewright.hashVersion": HASH_VERSION,
                "lakewright.key": '{"id": "number"}',
                "lakewright.names": '{"id": "ident"}',
            },
            "column 'id' is called 'ident' in the table and 'id' now",
        ),
    ],
)
def test_a_plan_rejects_a_table_that_the_entity_cannot_write(
    tmp_path: Path, context: Context, properties: dict[str, str], told: str | None
) -> None:
    lay_table(tmp_path / "lake/silver/orders", properties)
    found = Target.named(context.workspace, "orders").observe(context)
    if told is None:
        assert (found.pending, found.hold) == (("2022-9", "2022-10"), None)
        return
    assert (found.pending, found.waiting) == ((), ("2022-9", "2022-10"))
    assert found.hold is not None
    assert told in found.hold.error.message
    assert found.hold.error.remedy


def test_a_build_reports_stale_locks_and_no_others(context: Context) -> None:
    workspace = context.workspace
    orders, entity = Target.named(workspace, "orders"), workspace.entity("orders")
    bronze = entity.places(workspace.lake.settings).bronze
    application = application_of("tests", entity)
    found = context.ledger.discover(
        discovered(list_slices(SliceFolder(bronze), workspace.lake), application, "orders")
    )
    other = replace(context.leases.holder, run_id="run-0")
    for item, seconds in zip(found.new, (0, 60), strict=True):
        lease = timedelta(seconds=seconds)
        context.ledger.acquire(item.item_id, application, other, duration=lease, token_counter="t")

    built = orders.execute(replace(context, is_stopping=lambda: True), Phase.BUILD)

    (told,) = built.metrics["stale_locks"]
    assert (told["item_id"], told["run_id"]) == (found.new[0].item_id, "run-0")
    assert built.reasons[-1].code is Code.STALE_LOCK
    assert "its lease expired" in built.reasons[-1].params["why"]


HISTORIC = PROJECT.replace("processtype: merge", "processtype: historic")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2022-01-01", "one processing time is given for 2 pending slices"),
        ("${slice.name}", "the processing time '2022-9' of slice 2022-9 is not ISO 8601"),
        ("$nothing", "has no value for the slice"),
        ("${slice.name.substring(0, 4)}-01-01", "of slice 2022-10 is not later than that of slice 2022-9"),
        ("$slice.date('yyyy-M')-01", "has no value for the slice 2022-9"),
    ],
)
def test_processing_times_that_slices_cannot_have_hold_them_back(
    tmp_path: Path, workspace: Workspace, given: str, told: str
) -> None:
    """A7: `plan` refuses what `job` would refuse, with the same words."""
    del workspace
    there = make_context(make_workspace(tmp_path, HISTORIC.replace("2022-01-01", f'"{given}"')))

    found = Target.named(there.workspace, "orders").observe(there)

    assert (found.pending, found.waiting) == ((), ("2022-9", "2022-10"))
    assert found.hold is not None
    assert told in found.hold.error.message
    assert found.hold.error.remedy


def test_each_slice_may_have_its_own_processing_time(tmp_path: Path, workspace: Workspace) -> None:
    """A7: an expression over the slice."""
    del workspace
    bronze = tmp_path / "lake/bronze/orders"
    for old, new in (("2022-9", "d-2022-09-01"), ("2022-10", "d-2022-10-01")):
        (bronze / old).rename(bronze / new)
    there = make_context(
        make_workspace(tmp_path, HISTORIC.replace("2022-01-01", "'${slice.date}T06:00:00Z'"))
    )

    found = Target.named(there.workspace, "orders").observe(there)

    assert (found.pending, found.hold) == (("d-2022-09-01", "d-2022-10-01"), None)


def test_a_mistyped_processing_time_is_a_fault_of_the_project(tmp_path: Path) -> None:
    """A5: history must not be stamped wrongly for good."""
    with pytest.raises(SpecError) as raised:
        Target.named(make_workspace(tmp_path, PROJECT.replace("2022-01-01", "2022/01/01")), "orders")
    assert "'2022/01/01' is not a time in ISO 8601" in str(raised.value)
    with pytest.raises(SpecError) as raised:
        Target.named(make_workspace(tmp_path, PROJECT.replace("2022-01-01", "'${slice.day}'")), "orders")
    assert "a slice has no 'day' in expressions; it has date, name and time" in str(raised.value)


def test_descriptions_that_the_table_lacks_are_changes_of_create(tmp_path: Path) -> None:
    """D4: comments of columns follow their declared descriptions."""
    described = PROJECT.replace("{name: id,", "{name: id, description: Who,")
    entity = make_workspace(tmp_path, described).entity("orders")
    columns = (Field(name="ID", type=parse_type("int")), Field(name="v", type=parse_type("int")))
    state = TableState(exists=True, columns=columns)
    assert new_comments(entity, state) == {"ID": "Who"}
    known = (Field(name="ID", type=parse_type("int"), description="Who"),)
    assert new_comments(entity, TableState(exists=True, columns=known)) == {}
