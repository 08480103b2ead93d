"""Undo and rebuild by the command line."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.acceptance.command import Done
from tests.collectors import Collector, collecting
from tests.commands import InProcess
from tests.spark.kept import put_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = "name: shop\nmodules: [model]\nlake: {root_folder: '${project.basedir}/lake'}\n"
MODEL = """
connections:
  shop:
    settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns: [{name: id, fieldroles: [businesskey]}]
    watermark: [{column_name: day, operation: and, operation_group: '0', expression: '${last_value}'}]
    settings: {delete_missing: true, delete_scope: closed}
  prices:
    id: 2
    connection: shop
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
targets:
  orders: {kind: entity, entity: orders}
  prices: {kind: entity, entity: prices}
jobs: {daily: {targets: [orders, prices]}}
"""
SLICES = {
    "2024-05-01.json": [{"id": 1, "v": "a", "day": 1}, {"id": 2, "v": "b", "day": 1}],
    "2024-05-02.json": [{"id": 2, "v": "B", "day": 2}, {"id": 3, "v": "c", "day": 2}],
    "2024-05-03.json": [{"id": 3, "v": "C", "day": 3}, {"id": 1, "v": "A", "day": 3}],
}


HISTORY = [
    *[(1, "a", "2024-05-01", "2024-05-03"), (1, "A", "2024-05-03", None)],
    *[(2, "b", "2024-05-01", "2024-05-02"), (2, "B", "2024-05-02", None)],
    *[(3, "c", "2024-05-02", "2024-05-03"), (3, "C", "2024-05-03", None)],
]
"""What Historic makes of the slices: id, v, the day from which and the day until which they are valid."""


class Shop(InProcess):
    """A project with an entity of Merge and one of Historic, which get the same slices."""

    @classmethod
    def make(cls, folder: Path, session: SparkSession | None) -> Shop:
        (folder / "model").mkdir(parents=True)
        (folder / "project.yml").write_text(PROJECT)
        (folder / "model" / "model.yml").write_text(MODEL)
        return cls(folder, session)

    @classmethod
    def loaded(cls, folder: Path, session: SparkSession, *entities: str) -> Shop:
        """Return the project with all slices of some entities processed; it is made once in a folder."""

        def build() -> None:
            shop = cls.make(folder, session)
            for entity in entities:
                shop.load(entity, *SLICES)

        put_back(folder, build, session)
        return cls(folder, session)

    def put(self, entity: str, name: str, rows: list[dict[str, Any]]) -> Path:
        folder = self.folder / "lake" / "bronze" / entity
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder / name

    def load(self, entity: str, *names: str) -> None:
        for name in names:
            self.put(entity, name, SLICES[name])
        done = self.run("process", entity, "--processing-time", "${slice.date}")
        assert done.code == 0, done.all

    def table(self, entity: str, version: int | None = None) -> DeltaTable:
        return DeltaTable(self.folder / "lake" / "silver" / entity, version=version)

    def rows(self, entity: str, version: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a table, all columns, in order."""
        query = QueryBuilder().register("t", self.table(entity, version)).execute("select * from t")
        found = query.read_all()
        import pyarrow as pa  # type: ignore[import-untyped]

        table = pa.table(found)
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)

    def versions(self, entity: str) -> list[tuple[int, str, str, str | None]]:
        """Return the versions of all records: id, v, and the days from and until which they are valid."""
        columns = "id, v, cast(dlf_ValidFrom as date) f, cast(dlf_ValidTo as date) u"
        query = QueryBuilder().register("t", self.table(entity)).execute(f"select {columns} from t")
        import pyarrow as pa

        found = pa.table(query.read_all()).to_pylist()
        rows = [(row["id"], row["v"], str(row["f"]), row["u"] and str(row["u"])) for row in found]
        return sorted(rows, key=lambda row: (row[0], row[2]))

    def verdicts(self, entity: str) -> dict[str, str]:
        return {row["slice"]: row["verdict"] for row in self.json("manifest", "ls", "--entity", entity)}

    def watermark(self, entity: str) -> Any:
        found = [w for w in self.json("watermark", "ls") if w["entity"] == entity]
        return found[0]["value"] if found else None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loaded") / "shop"


@pytest.fixture
def shop(place: Path, spark: SparkSession) -> Shop:
    """Has all slices of both entities processed."""
    return Shop.loaded(place, spark, "orders", "prices")


def assert_told_once(collector: Collector, verb: str, entity: str) -> None:
    """Issue 13, part 5: a command is told with the table that it wrote, and nothing of its replay beside."""
    assert collector.told() == [(state, f"shop.{verb}.{entity}") for state in ("START", "COMPLETE")]
    first, last = collector.events
    assert first["run"]["runId"] == last["run"]["runId"]
    (written,) = last["outputs"]
    assert written["name"].endswith(f"/silver/{entity}")
    assert {"id", "v"} <= {each["name"] for each in written["facets"]["schema"]["fields"]}


def test_the_newest_slice_is_undone(shop: Shop) -> None:
    """Issue 15, part 1: one commit without new files; preview, manifest and watermarks in step."""
    before = shop.rows("orders", 1)
    after, files = shop.rows("orders"), set((shop.folder / "lake/silver/orders").glob("*.parquet"))

    planned = shop.json("undo", "orders", "2024-05-03.json", "--dry-run")
    assert (planned["back_to"], planned["done"], planned["replayed"]) == (1, False, [])
    assert planned["difference"]["rows_only_before"] == 3
    assert {row["v"] for row in planned["difference"]["sample_only_before"]} == {"A", "B", "C"}
    asked = shop.run("undo", "orders", "2024-05-03.json")
    assert (asked.code, "give --yes" in asked.err) == (1, True), asked.all
    assert shop.rows("orders") == after

    with collecting() as collector:
        told = {"OPENLINEAGE_URL": collector.url}
        done = shop.run("undo", "orders", "2024-05-03.json", "--yes", "--reason", "sent twice", **told)
    assert done.code == 0, done.all
    assert "2024-05-03.json is skipped" in done.out
    assert_told_once(collector, "undo", "orders")
    assert shop.rows("orders") == before
    assert set((shop.folder / "lake/silver/orders").glob("*.parquet")) == files
    assert shop.verdicts("orders")["2024-05-03.json"] == "skipped"
    assert shop.watermark("orders") == 2
    shown = shop.run("manifest", "show", "orders/2024-05-03.json")
    assert "sent twice" in shown.out
    assert shop.json("doctor", "orders")["ok"]
    assert shop.run("manifest", "fsck").code == 0
    assert "undo orders" in shop.run("history").out
    again = shop.run("undo", "orders", "2024-05-03.json", "--yes")
    assert (again.code, "it is skipped" in again.err) == (2, True), again.all


@pytest.mark.nightly  # test_ended_rewinds.py requeues by an undo, and processes what it requeued
def test_slices_that_were_corrected_together_are_requeued_by_one_undo(shop: Shop) -> None:
    never = shop.rows("orders")
    bronze = shop.folder / "lake/bronze/orders"
    for name in ("2024-05-02.json", "2024-05-03.json"):
        text = (bronze / name).read_text()
        (bronze / name).write_text(text + "\n")
    done = shop.run("undo", "orders", "2024-05-02.json", "--requeue", "--yes")
    assert done.code == 0, done.all
    assert shop.run("process", "orders").code == 0
    assert shop.rows("orders") == never


@pytest.mark.nightly
def test_an_older_slice_requeued_is_processed_again_with_those_after_it(shop: Shop) -> None:
    """Undo, then requeue equals never undone: the recorded processing times are used again."""
    never = shop.rows("prices")
    done = shop.json("undo", "prices", "2024-05-02.json", "--requeue", "--yes")
    assert (done["back_to"], done["requeued"]) == (0, ["2024-05-02.json", "2024-05-03.json"])
    assert shop.verdicts("prices") == {
        "2024-05-01.json": "processed",
        "2024-05-02.json": "ready",
        "2024-05-03.json": "ready",
    }
    assert len(shop.rows("prices")) == 2
    assert shop.run("process", "prices").code == 0
    assert shop.rows("prices") == never

    first = shop.json("undo", "prices", "2024-05-01.json", "--requeue", "--yes")
    assert first["back_to"] is None
    assert shop.rows("prices") == []
    assert shop.run("process", "prices").code == 0
    assert shop.rows("prices") == never

    # After a whole rebuild one commit holds all slices; those before the slice stay in the table.
    assert shop.run("rebuild", "prices", "--yes").code == 0
    built = shop.json("undo", "prices", "2024-05-02.json", "--requeue", "--yes")
    assert (built["replayed"], built["requeued"]) == (["2024-05-01.json"], done["requeued"])
    assert list(shop.verdicts("prices").values()) == ["processed", "ready", "ready"]
    assert len(shop.rows("prices")) == 2
    assert shop.run("process", "prices").code == 0
    assert shop.rows("prices") == never
    assert shop.json("doctor", "prices")["ok"]


@pytest.mark.nightly
def test_undo_after_undo_equals_processing_the_other_slices(spark: SparkSession, tmp_path: Path) -> None:
    """Merge and Historic; with a slice in between, and down to a table without rows."""
    shop, other = Shop.make(tmp_path / "shop", spark), Shop.make(tmp_path / "other", spark)
    first, second, third = SLICES
    for entity in ("orders", "prices"):
        shop.load(entity, *SLICES)
        other.load(entity, first, third)
        if entity == "orders":
            planned = shop.json("undo", entity, second, "--dry-run")
            assert (planned["replayed"], planned["difference"]["rows_only_before"]) == ([third], 3)
        done = shop.run("undo", entity, second, "--yes", "--reason", "broken")
        assert done.code == 0, done.all
        assert shop.rows(entity) == other.rows(entity)
        assert shop.json("doctor", entity)["ok"]
    assert shop.watermark("orders") == 3
    assert shop.run("manifest", "fsck").code == 0

    # The next slice continues, and both are undone after an undo.
    shop.put("prices", "2024-05-04.json", [{"id": 1, "v": "z", "day": 4}])
    other.put("prices", "2024-05-04.json", [{"id": 1, "v": "z", "day": 4}])
    for each in (shop, other):
        each.load("prices")
        assert each.run("undo", "prices", first, "--yes").code == 0
    assert shop.rows("prices") == other.rows("prices")
    assert len(shop.rows("prices")) == 3
    for name in (third, "2024-05-04.json"):
        assert shop.run("undo", "prices", name, "--yes").code == 0
    assert shop.rows("prices") == []
    assert shop.json("doctor", "prices")["ok"]


@pytest.mark.nightly  # test_difference.py compares such rows
def test_rows_that_a_slice_has_only_seen_again_stay_in_the_preview_of_its_undo(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop, (first, second, _) = Shop.make(tmp_path / "shop", spark), SLICES
    shop.load("orders", first)
    shop.put("orders", second, SLICES[first])
    assert shop.run("process", "orders").code == 0
    found = shop.json("undo", "orders", second, "--dry-run")["difference"]
    assert (found["rows_seen"], found["rows_equal"]) == (2, 0)
    assert (found["rows_only_before"], found["rows_only_after"]) == (0, 0)
    told = shop.run("undo", "orders", second, "--dry-run").out
    assert "2 rows stay (2 of them with another lastSeen)" in told


def test_a_table_is_built_again_under_the_declaration_of_today(shop: Shop) -> None:
    """Issue 15, part 2: the same declaration gives the same rows; Merge made Historic has its history."""
    before = shop.rows("orders")
    compared = shop.json("rebuild", "orders", "--check")
    assert compared["done"] is False
    assert (compared["difference"]["rows_equal"], compared["difference"]["rows_only_after"]) == (3, 0)
    assert shop.table("orders").version() == 2
    assert Path(compared["beside"]) == shop.folder / "lake/silver/orders__rebuild"
    assert Path(compared["beside"]).exists()
    assert "orders__rebuild is left of a rebuild" in shop.run("doctor", "orders").out

    model = shop.folder / "model" / "model.yml"
    historic = MODEL.replace("processtype: merge", "processtype: historic")
    model.write_text(historic.replace("delete_missing: true", "delete_missing: false"))
    held = shop.run("plan", "daily", "build")
    assert held.code == 0, held.all
    shop.put("orders", "2024-05-04.json", [{"id": 9, "v": "n", "day": 4}])
    assert "lakewright rebuild" in shop.run("process", "orders").err
    asked = shop.run("rebuild", "orders")
    assert (asked.code, "give --yes" in asked.err) == (1, True), asked.all
    assert shop.rows("orders") == before

    with collecting() as collector:
        told, why = {"OPENLINEAGE_URL": collector.url}, "orders have a history now"
        done = shop.run("rebuild", "orders", "--yes", "--reason", why, **told)
    assert done.code == 0, done.all
    assert_told_once(collector, "rebuild", "orders")
    # What the comparison before has built is used; it is no attempt that failed.
    assert "earlier attempt" not in done.err
    assert "The former rows are version 2" in done.out
    assert not (shop.folder / "lake/silver/orders__rebuild").exists()
    assert shop.versions("orders") == HISTORY
    assert shop.rows("orders", version=2) == before
    assert shop.verdicts("orders")["2024-05-03.json"] == "processed"
    assert shop.json("doctor", "orders")["ok"]
    assert shop.run("manifest", "fsck").code == 0


@pytest.mark.nightly
def test_a_table_is_built_again_from_a_slice_on(shop: Shop) -> None:
    """The rows of the slices before it stay as they are."""
    part = shop.json("rebuild", "prices", "--from", "2024-05-03.json", "--check")
    assert (part["slices"], part["difference"]["rows_equal"]) == (["2024-05-03.json"], len(HISTORY))


def test_versions_older_than_a_week_are_read_while_their_files_are_there(shop: Shop) -> None:
    """Delta itself refuses them, so that the last of monthly slices could not be undone."""
    before = shop.rows("orders", 1)
    (millis,) = (each["timestamp"] for each in shop.table("orders").history() if each["version"] == 1)
    second = datetime.fromtimestamp(millis / 1000, UTC).isoformat()
    log = sorted((shop.folder / "lake/silver/orders/_delta_log").glob("*.json"))
    for number, commit in enumerate(log):
        then = (datetime.now(UTC) - timedelta(days=100 - 30 * number)).timestamp()
        os.utime(commit, (then, then))
    assert len(shop.json("sql", "SELECT id FROM silver.orders", "--as-of", second)) == len(before)
    assert shop.json("rebuild", "orders", "--from", "2024-05-03.json", "--check")["difference"]
    done = shop.run("undo", "orders", "2024-05-03.json", "--yes")
    assert done.code == 0, done.all
    assert shop.rows("orders") == before


@pytest.mark.nightly
def test_a_slice_that_was_skipped_since_it_was_processed_is_left_out_of_a_rebuild(shop: Shop) -> None:
    """The table is as if it had been undone, and the manifest still skips it."""
    last = "2024-05-03.json"
    assert shop.watermark("orders") == 3
    assert shop.run("manifest", "skip", f"orders/{last}", "--reason", "broken").code == 0
    refused = shop.run("undo", "orders", last, "--yes")
    assert (refused.code, "`lakewright rebuild orders`" in refused.err) == (2, True), refused.all
    done = shop.json("rebuild", "orders", "--yes")
    assert (done["skipped"], len(done["slices"])) == ([last], 2)
    values = [row["v"] for row in shop.json("sql", "SELECT v FROM silver.orders ORDER BY id")]
    assert values == ["a", "B", "c"]
    assert (shop.verdicts("orders")[last], shop.watermark("orders")) == ("skipped", 2)
    assert shop.json("doctor", "orders")["ok"]
    assert shop.run("manifest", "fsck").code == 0
    assert shop.run("manifest", "unskip", f"orders/{last}", "--reason", "right").code == 0
    assert shop.run("process", "orders").code == 0
    assert (shop.verdicts("orders")[last], shop.watermark("orders")) == ("processed", 3)


@pytest.mark.nightly  # test_ended_rewinds.py includes a slice by a rebuild, which dies after its commit
def test_a_slice_that_waits_is_put_in_its_place_by_a_rebuild(shop: Shop) -> None:
    """Each version begins when its slice says, also if the slice was undone, or came after later ones."""
    first, second, last = SLICES
    whole = shop.rows("prices"), shop.watermark("prices")
    assert shop.run("undo", "prices", second, "--yes").code == 0
    assert shop.run("rebuild", "prices", "--include", second, "--yes").code == 2  # it is skipped
    assert shop.run("manifest", "unskip", f"prices/{second}").code == 0
    refused = shop.run("rebuild", "prices", "--include", second, "--from", last, "--yes")
    assert (refused.code, "Give --include without --from" in refused.err) == (2, True), refused.all

    done = shop.json("rebuild", "prices", "--include", second, "--yes")

    assert (done["included"], done["slices"]) == ([second], [first, second, last])
    assert (shop.rows("prices"), shop.watermark("prices")) == whole
    assert set(shop.verdicts("prices").values()) == {"processed"}
    assert shop.json("doctor", "prices")["ok"]
    assert shop.run("manifest", "fsck").code == 0
    again = shop.run("rebuild", "prices", "--include", second, "--yes")
    assert (again.code, "it is processed" in again.err) == (2, True), again.all


@pytest.mark.nightly
def test_a_later_slice_that_was_skipped_since_it_was_processed_is_left_out_of_an_undo(shop: Shop) -> None:
    first, second, last = SLICES
    assert shop.run("manifest", "skip", f"orders/{last}", "--reason", "broken").code == 0
    done = shop.json("undo", "orders", second, "--yes")
    assert (done["skipped"], done["replayed"], done["back_to"]) == ([last], [], 0)
    verdicts = {first: "processed", second: "skipped", last: "skipped"}
    assert (shop.verdicts("orders"), shop.watermark("orders")) == (verdicts, 1)
    values = [row["v"] for row in shop.json("sql", "SELECT v FROM orders ORDER BY id")]
    assert values == ["a", "b"]
    assert shop.json("doctor", "orders")["ok"]
    assert shop.run("manifest", "fsck").code == 0


@pytest.mark.nightly
def test_a_second_operator_and_a_run_wait_for_a_rebuild(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two operators at once, and a job beside a rebuild: who comes second is told who does what."""
    shop = Shop.make(tmp_path / "shop", spark)
    shop.load("prices", "2024-05-02.json", "2024-05-03.json")
    before = shop.rows("prices")
    answers: dict[str, Done] = {}
    new = "2024-05-04.json"

    def meanwhile(name: str) -> None:
        if name != "before_swap" or answers:
            return
        shop.put("prices", new, [{"id": 1, "v": "z", "day": 4}])
        answers["rebuild"] = shop.run("rebuild", "prices", "--yes")
        answers["undo"] = shop.run("undo", "prices", "2024-05-03.json", "--yes")
        answers["process"] = shop.run("process", "prices")
        answers["job"] = shop.run("job", "daily", "build")
        answers["plan"] = shop.run("plan", "daily", "build")

    monkeypatch.setattr("lakewright.slices.rewind.execution.reach_failpoint", meanwhile)
    done = shop.run("rebuild", "prices", "--yes", "--reason", "tried")
    assert done.code == 0, done.all
    for command, answer in answers.items():
        assert "the rebuild of prices by" in answer.all, (command, answer.all)
        assert (answer.code == 0) is (command == "plan"), (command, answer.all)
    assert shop.rows("prices") == before
    assert shop.verdicts("prices").get(new, "unknown") in ("ready", "unknown")
    shop.load("prices")
    assert len(shop.rows("prices")) == len(before) + 1
    assert shop.json("doctor", "prices")["ok"]


class Died(BaseException):
    """The process ends here: nothing after it runs."""


POINTS = ("before_replay", "after_replay", "before_swap", "before_rewind")
"""Points of a rewind at which the table is as it was."""


@pytest.mark.parametrize(
    "points", [POINTS[2:3], pytest.param(POINTS, marks=pytest.mark.nightly)], ids=["one", "all"]
)
def test_an_older_slice_is_undone_beside_the_table_although_the_command_died_before(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, points: tuple[str, ...]
) -> None:
    """The slices after it are applied again; the table is replaced by one commit, or is as before.

    Two operators at once, and a job beside an undo: who comes second is told who does what.
    """
    first, second, third = SLICES
    assert shop.versions("prices") == HISTORY
    for point in points:
        _die_in(shop, monkeypatch, point, "undo", "prices", second)
        assert shop.versions("prices") == HISTORY, point
    answers: dict[str, Done] = {}
    new = "2024-05-04.json"

    def meanwhile(name: str) -> None:
        if name == "before_swap" and not answers:
            shop.put("prices", new, [{"id": 1, "v": "z", "day": 4}])
            answers["rebuild"] = shop.run("rebuild", "prices", "--yes")
            answers["undo"] = shop.run("undo", "prices", third, "--yes")
            answers["process"] = shop.run("process", "prices")
            answers["job"] = shop.run("job", "daily", "build")
            answers["plan"] = shop.run("plan", "daily", "build")

    monkeypatch.setattr("lakewright.slices.rewind.execution.reach_failpoint", meanwhile)
    done = shop.run("undo", "prices", second, "--yes", "--reason", "broken")
    assert done.code == 0, done.all
    assert set(answers) == {"rebuild", "undo", "process", "job", "plan"}
    for command, answer in answers.items():
        assert f"the undo of {second} of prices by" in answer.all, (command, answer.all)
        assert (answer.code == 0) is (command == "plan"), (command, answer.all)
    assert f"back to version 0, then {third} again" in done.out
    without = shop.versions("prices")
    assert without == [
        *[(1, "a", first[:10], third[:10]), (1, "A", third[:10], None)],
        *[(2, "b", first[:10], None), (3, "C", third[:10], None)],
    ]
    verdicts = shop.verdicts("prices")
    assert verdicts.pop(new, "unknown") in ("ready", "unknown")
    assert verdicts == {first: "processed", second: "skipped", third: "processed"}
    assert not (shop.folder / "lake" / "silver" / "prices__rebuild").exists()
    assert shop.json("doctor", "prices")["ok"]
    assert shop.run("manifest", "fsck").code == 0
    assert "undo of 2024-05-02.json" in shop.run("manifest", "show", f"prices/{third}").out

    (shop.folder / "lake" / "bronze" / "prices" / third).unlink()
    refused = shop.run("undo", "prices", first, "--yes")
    assert (refused.code, f"{third} is gone" in refused.err) == (1, True), refused.all
    assert shop.versions("prices") == without


@pytest.mark.nightly
def test_a_rebuild_that_dies_is_ended_by_the_same_command(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every point: the table is as before or as after, and the command typed again gives the end."""
    before = shop.rows("prices")
    for point in (*POINTS, "after_rewind"):
        _die_in(shop, monkeypatch, point, "rebuild", "prices")
        assert point == "after_rewind" or shop.rows("prices") == before
    done = shop.run("rebuild", "prices", "--yes")
    assert "had changed the table, and is recorded now" in done.err
    assert shop.rows("prices") == before
    assert shop.json("doctor", "prices")["ok"]
    assert shop.run("manifest", "fsck").code == 0


def _die_in(shop: Shop, monkeypatch: pytest.MonkeyPatch, point: str, *command: str) -> None:
    with monkeypatch.context() as patch:
        _die_at(patch, point)
        with pytest.raises(Died):
            shop.run(*command, "--yes")


def _die_at(patch: pytest.MonkeyPatch, point: str) -> None:
    """Let the process die at a point: no handler gets to the manifest any more."""

    def reach_failpoint(name: str) -> None:
        if name == point:
            raise Died(name)

    def gone(*_: Any, **__: Any) -> None:
        raise Died("nothing is written by a dead process")

    for module in ("slice_replay", "rewind.execution"):
        patch.setattr(f"lakewright.slices.{module}.reach_failpoint", reach_failpoint)
    patch.setattr("lakewright.usecases.rewinding.conclude", gone)
