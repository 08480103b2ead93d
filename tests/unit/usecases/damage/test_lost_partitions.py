"""A partition of a gold table, or the log of one, is gone: `status` says so before its instance runs."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.unit.usecases.staleness.test_downstream import built, lake
from tests.unit.usecases.test_lost_rows import DAYS, emptied

from lakewright.app import App
from lakewright.lake.files import ObjectFiles
from lakewright.usecases.damage import lost_partitions as partitions
from lakewright.usecases.damage.lost_outputs import LOST, lost_outputs
from lakewright.usecases.damage.lost_partitions import LOST_PARTITION

pa: Any = import_module("pyarrow")

DELTA = (
    "names: {kind: file, format: json, location: gold/names",
    "names: {kind: delta, location: gold/names",
)


def changed(app: App, folder: Path, before: str, after: str) -> App:
    """Open the lake again with another model."""
    app.close()
    model = folder / "model/model.yml"
    assert before in model.read_text()
    model.write_text(model.read_text().replace(before, after))
    return App.open(folder)


def build(app: App, *days: str, rows: int = 1) -> None:
    for day in days:
        run = built(app, "daily", ("names",), day=day)
        entry = {**next(app.journal.targets(run.run_id)), "metrics": {"target_records": rows}}
        app.journal.record_targets(run, {0: entry})


def fill(folder: Path, *days: str) -> None:
    for day in days:
        place = folder / f"gold/names/day={day}"
        place.mkdir(parents=True)
        (place / "part-0.json").write_text("{}")


def test_status_names_the_instances_whose_folders_are_gone(tmp_path: Path) -> None:
    app = lake(tmp_path)
    build(app, *DAYS)
    fill(tmp_path, DAYS[0])
    (found,) = lost_outputs(app).lost
    assert found.code == LOST_PARTITION
    assert found.message == (
        "target 'names': 2 instances were built into partitions that have no rows any more: day=2022-01-02, "
        f"day=2022-01-03, in {tmp_path}/gold/names/day=2022-01-02, {tmp_path}/gold/names/day=2022-01-03"
    )
    assert found.details["commands"] == ["lakewright job daily build -t names day=2022-01-02,2022-01-03"]
    assert "`lakewright job daily truncate -t names day=2022-01-02,2022-01-03 --yes`" in str(found.remedy)

    emptied(app, "TRUNCATE", "names", DAYS[1])
    (found,) = lost_outputs(app).lost
    assert found.details["commands"] == ["lakewright job daily build -t names day=2022-01-03"]
    emptied(app, "TRUNCATE", "names", DAYS[2])
    assert lost_outputs(app).lost == ()
    app.close()


def test_a_partition_that_got_no_rows_or_that_another_target_empties_is_not_missed(tmp_path: Path) -> None:
    app = lake(tmp_path)
    fill(tmp_path, DAYS[0])
    build(app, DAYS[1], rows=0)
    assert lost_outputs(app).lost == ()
    build(app, DAYS[1])
    assert len(lost_outputs(app).lost) == 1
    emptying = "targets:\n  old: {kind: truncate, relation: names, partitions: {day: $day}}\n  orders"
    app = changed(app, tmp_path, "targets:\n  orders", emptying)
    assert lost_outputs(app).lost == ()
    app.close()


def test_the_rows_of_a_partition_of_a_delta_table_are_told_by_its_log(tmp_path: Path) -> None:
    app = changed(lake(tmp_path), tmp_path, *DELTA)
    build(app, *DAYS[:2])
    rows = pa.table({"id": [1, 1], "day": pa.array(DAYS[:2]).cast(pa.date32())})
    write_deltalake(tmp_path / "gold/names", rows, partition_by=["day"])
    assert lost_outputs(app).lost == ()
    DeltaTable(tmp_path / "gold/names").delete(f"day = '{DAYS[1]}'")
    (found,) = lost_outputs(app).lost
    assert found.details["commands"] == [f"lakewright job daily build -t names day={DAYS[1]}"]
    app.close()


def test_a_delta_table_without_its_log_is_lost_and_its_folder_is_to_be_moved_away(tmp_path: Path) -> None:
    app = changed(lake(tmp_path), tmp_path, *DELTA)
    build(app, DAYS[0])
    table = tmp_path / "gold/names"
    write_deltalake(table, pa.table({"id": [1]}))
    shutil.rmtree(table / "_delta_log")
    (found,) = lost_outputs(app).lost
    assert found.code == LOST
    assert f"{table} has no _delta_log any more, by which it is a Delta table" in found.message
    assert found.details["commands"] == [
        f"mv {table} {table}.damaged",
        f"lakewright job daily build -t names day={DAYS[0]}",
    ]
    shutil.rmtree(table)
    (found,) = lost_outputs(app).lost
    assert "does not exist any more" in found.message
    app.close()


def test_in_s3_each_of_the_last_partitions_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = changed(lake(tmp_path), tmp_path, "gold/names", "s3://lake/gold/names")
    build(app, *DAYS)
    asked: list[str] = []

    def exists(_: ObjectFiles, path: str) -> bool:
        asked.append(path)
        return "=" not in path

    monkeypatch.setattr(ObjectFiles, "exists", exists)
    monkeypatch.setattr(partitions, "MOST", 2)
    (found,) = lost_outputs(app).lost
    place = "s3://lake/gold/names"
    assert sorted(asked) == [place, f"{place}/day={DAYS[1]}", f"{place}/day={DAYS[2]}"]
    assert len(found.details["commands"]) == 1

    monkeypatch.setattr(partitions, "look_within", lambda looks, _: dict.fromkeys(looks, "takes too long"))
    assert [(each.entity, each.why) for each in lost_outputs(app).unseen] == [("names", "takes too long")]
    app.close()
