"""Tables that somebody broke: what is wrong is found, with whom, since when, and is put right in one commit.

`processing-strategies.md`, "Version Lifecycle" and "Merge Strategy".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same
from tests.silver import rows_of

from lakewright.doctor import examine, plan_repair, repair
from lakewright.errors import CommitConflict, LeaseHeld
from lakewright.lake.commit import read_commits
from lakewright.lake.observation import observe_table
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.schema.canonical import CanonicalForm
from lakewright.stores.memory import MemoryStore
from lakewright.strategies import schema_fit
from lakewright.targets.context import Context, RunOptions
from lakewright.targets.lease import hold_leases
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity

PROJECT = """
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: {strategy}
    columns: [{{name: no, newname: id, fieldroles: [businesskey]{declared}}}]
targets:
  orders: {{kind: entity, entity: orders}}
"""

DELETED = {
    "merge": "dlf_deleted = true",
    "historic": "dlf_deleted = true, dlf_IsCurrent = false, dlf_ValidTo = ifnull(dlf_ValidTo, dlf_lastSeen)",
}
"""Assignments that end a record."""


class Lake:
    """A lake with one entity of two slices, processed; `declared` is more of its key's declaration."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        strategy: str,
        *,
        keys: Sequence[object] = range(1, 13),
        declared: str = "",
    ) -> None:
        bronze = folder / "lake/bronze/orders"
        bronze.mkdir(parents=True)
        for name in ("1", "2"):
            rows = {"no": keys, "v": [f"{name}{n}" for n in keys]}
            pd.DataFrame(rows).to_parquet(bronze / name)
        self.spark = spark
        self.workspace = make_workspace(
            folder, PROJECT.format(strategy=strategy, declared=declared), sessions=same(spark)
        )
        self.store = MemoryStore()
        self.runs = count()
        self.entity: Entity = self.workspace.entity("orders")
        self.silver = self.entity.places(self.workspace.lake.settings).silver
        built = Target.named(self.workspace, "orders").execute(self.context(), Phase.BUILD)
        assert built.status is Status.SUCCESS

    def context(self, **options: Any) -> Context:
        run_id = f"run-{next(self.runs)}"
        return make_context(self.workspace, store=self.store, run_id=run_id, options=RunOptions(**options))

    def sql(self, statement: str) -> None:
        self.spark.newSession().sql(statement.format(table=self.silver.sql)).collect()

    def rows(self) -> list[tuple[Any, ...]]:
        found = rows_of(Path(str(self.silver.location)))
        left_out = "dlf_source_filename"
        return sorted((tuple(v for n, v in row.items() if n != left_out) for row in found), key=repr)

    def broken(self) -> dict[str, int]:
        return {finding.rule: finding.count for finding in examine(self.context(), self.entity).findings}


def test_a_broken_history_is_found_and_put_right(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(tmp_path, spark, "historic")
    whole = lake.rows()
    assert plan_repair(lake.context(), lake.entity) is None
    lake.sql(
        """UPDATE {table} SET
        dlf_ValidTo = case when dlf_IsCurrent then null when id = 1 then null
          when id = 2 then dlf_ValidTo + interval 1 hour when id = 3 then dlf_ValidFrom - interval 1 hour
          when id = 4 then dlf_ValidFrom else dlf_ValidTo end,
        dlf_IsCurrent = dlf_IsCurrent and id <> 5,
        dlf_SourceHash = if(id = 6 and dlf_IsCurrent, null, dlf_SourceHash),
        PK_orders = if(id = 7 and not dlf_IsCurrent, 'x', if(id = 8 and dlf_IsCurrent, null, PK_orders)),
        dlf_deleted = if(id = 9, null, dlf_deleted),
        dlf_ValidFrom = if(id = 10 and dlf_IsCurrent, null, dlf_ValidFrom)"""
    )
    lake.sql("INSERT INTO {table} SELECT * FROM {table} WHERE id = 11 AND dlf_IsCurrent")

    diagnosis = examine(lake.context(), lake.entity)

    found = {finding.rule: finding for finding in diagnosis.findings}
    assert set(found) == {
        *("current_twice", "begins_twice", "overlap", "backward", "gap", "mark_wrong", "start_missing"),
        *("key_missing", "key_wrong", "hash_missing", "deleted_missing"),
    }
    assert found["overlap"].samples == ({"id": "2"},)
    since = {rule: commit and commit.version for rule, commit in diagnosis.since.items()}
    assert since["begins_twice"] == 3
    assert {version for rule, version in since.items() if rule != "begins_twice"} == {2}
    assert [commit.operation for commit in diagnosis.foreign_commits] == ["UPDATE", "WRITE"]

    planned = plan_repair(lake.context(), lake.entity)
    assert planned is not None
    assert (planned.changed, planned.removed, planned.doubled) == (11, 0, 1)
    assert planned.shown[0]["key"] == {"id": "1"}
    assert planned.shown[0]["changes"]["dlf_ValidTo"][0] is None
    assert {finding.rule for finding in planned.left} == {"begins_twice", "current_twice"}
    assert repair(lake.context(), lake.entity, planned, {"reason": "by hand"}) == 4
    lossy = plan_repair(lake.context(permissions=Permissions(allow_data_loss=True)), lake.entity)
    assert lossy is not None
    assert (lossy.changed, lossy.removed, lossy.left) == (0, 1, ())
    repair(lake.context(), lake.entity, lossy, {"reason": "twice"})

    assert lake.rows() == whole
    assert (
        Target.named(lake.workspace, "orders").execute(lake.context(), Phase.VERIFY).status is Status.SUCCESS
    )
    log = read_commits(lake.workspace.lake, lake.silver)
    assert [each.content["repair"] for each in log[-2:]] == [{"reason": "by hand"}, {"reason": "twice"}]


@pytest.mark.nightly  # keys of earlier versions; the test above finds faults
@pytest.mark.parametrize("strategy", ["merge", pytest.param("historic", marks=pytest.mark.nightly)])
def test_records_whose_keys_a_cast_makes_equal_are_found(
    tmp_path: Path, spark: SparkSession, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table whose primary keys are of the source's values, as earlier versions made them."""
    monkeypatch.setattr(schema_fit, "is_key_cast", lambda _: False)
    monkeypatch.setattr(schema_fit, "canonical_form", lambda _, zone: CanonicalForm("2", zone))
    lake = Lake(tmp_path, spark, strategy, keys=["7", "07", "8", "8.0"], declared=", datatype: double")

    (found,) = examine(lake.context(), lake.entity).findings

    assert (found.rule, found.count) == ("key_alike", 4)
    assert found.samples == ({"id": "7.0"}, {"id": "8.0"})
    lake.sql(f"UPDATE {{table}} SET {DELETED[strategy]} WHERE v IN ('107', '207', '18.0', '28.0')")
    assert not lake.broken()


@pytest.mark.nightly
def test_a_repair_writes_only_what_it_showed(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(tmp_path, spark, "merge")
    whole = lake.rows()
    lake.sql("UPDATE {table} SET dlf_SourceHash = null, PK_orders = null WHERE id = 1")
    lake.sql("UPDATE {table} SET PK_orders = (SELECT max(PK_orders) FROM {table} WHERE id = 3) WHERE id = 2")
    assert lake.broken() == {"key_twice": 2, "key_missing": 1, "key_wrong": 1, "hash_missing": 1}
    planned = plan_repair(lake.context(), lake.entity)
    assert planned is not None
    assert (planned.changed, planned.left) == (2, ())

    lake.sql("UPDATE {table} SET v = 'changed' WHERE id = 4")
    with pytest.raises(CommitConflict, match="since the repair was planned"):
        repair(lake.context(), lake.entity, planned, {})
    again = plan_repair(lake.context(), lake.entity)
    assert again is not None
    other = lake.context()
    with (
        hold_leases(other, Target.named(lake.workspace, "orders").provides(lake.workspace, Phase.BUILD)),
        pytest.raises(LeaseHeld),
    ):
        repair(lake.context(), lake.entity, again, {})
    repair(lake.context(), lake.entity, again, {})

    assert [row for row in lake.rows() if row not in whole] == [row for row in lake.rows() if row[0] == 4]
    assert lake.broken() == {}
    assert observe_table(lake.workspace.lake, lake.silver).version == 5


@pytest.mark.nightly
def test_of_rows_that_share_a_key_the_later_one_in_the_sequence_stays(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A11: not the one that was seen last."""
    lake = Lake(tmp_path, spark, "merge")
    lake.sql(
        """INSERT INTO {table} BY NAME SELECT * EXCEPT (v, dlf_lastSeen), '0' AS v,
        dlf_lastSeen + interval 1 hour AS dlf_lastSeen FROM {table} WHERE id = 1"""
    )
    kept = {}
    for column in (None, "v"):
        settings = lake.entity.settings.model_copy(update={"sequence_by": column})
        entity = lake.entity.model_copy(update={"settings": settings})
        planned = plan_repair(lake.context(permissions=Permissions(allow_data_loss=True)), entity)
        assert planned is not None
        kept[column] = [row["v"] for row in planned.rows.select("v").collect()]
    assert kept == {None: ["0"], "v": ["21"]}
