"""Slices whose time is the latest value of a column: history against a plain model, replays, refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from tests.commands import InProcess
from tests.silver import rows_of
from tests.spark.strategies.bench import SmallLake
from tests.spark.strategies.bench import entity as entity_of
from tests.spark.strategies.test_crash import dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Sequence[tuple[int, str, str]]
"""Rows of a slice: id, city and the column of the time."""

LATE = "people/b.csv"
HEAD = "name: shop\nlake: {timezone: Europe/Berlin}\nentities:\n"


def entity(name: str, seen: str) -> str:
    declared = f"from: {name}/*.csv, key: id, strategy: historic, time: {{from: seen}}"
    return f"  {name}: {{{declared}, columns: {{id: long, seen: {seen}}}}}"


def shop_of(folder: Path, spark: SparkSession, *entities: str) -> InProcess:
    (folder / "project.yml").write_text(HEAD + "\n".join(entities))
    return InProcess(folder, spark)


def deliver(folder: Path, slices: Mapping[str, Rows]) -> None:
    for name, rows in slices.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = (",".join(map(str, row)) for row in rows)
        (folder / name).write_text("\n".join(["id,city,seen", *lines, ""]))


def history(slices: Mapping[str, Rows]) -> list[tuple[int, str, str, str | None]]:
    """Return id, city, beginning and end of each version, as the slices make them in the order of names."""
    current: dict[int, tuple[str, str, str]] = {}
    closed = []
    for _, rows in sorted(slices.items()):
        at = max((seen for _, _, seen in rows if seen), default="")
        for key, city, seen in rows:
            before = current.get(key)
            if before is not None and before[:2] != (city, seen):
                closed.append((key, before[0], before[2], at))
            if before is None or before[:2] != (city, seen):
                current[key] = (city, seen, at)
    return sorted([*closed, *((key, city, at, None) for key, (city, _, at) in current.items())], key=str)


def shown(shop: InProcess, entity: str) -> list[tuple[object, ...]]:
    """Return the same of a table, in the lake's time zone."""
    names = ("id", "city", "dlf_ValidFrom", "dlf_ValidTo")
    rows = rows_of(shop.folder / "lake/silver" / entity)
    return sorted((tuple(local(row[name]) for name in names) for row in rows), key=str)


def local(value: object) -> object:
    at = value.astimezone(ZoneInfo("Europe/Berlin")) if isinstance(value, datetime) else None
    return value if at is None else f"{at:%Y-%m-%dT%H:%M}"


def test_history_is_that_of_the_latest_values_also_after_replays(tmp_path: Path, spark: SparkSession) -> None:
    people: dict[str, Rows] = {
        "people/a.csv": [(1, "Rome", "2024-05-01T08:00"), (2, "Pisa", "2024-05-01T06:30"), (3, "Bari", "")],
        "people/c.csv": [(1, "Bari", "2024-05-03T07:00"), (2, "Pisa", "2024-05-01T06:30")],
        "people/d.csv": [(2, "Rome", "2024-05-03T08:00")],
    }
    items: dict[str, Rows] = {
        f"items/{day}.csv": [(10, f"c{day}", f"2024-05-0{day}"), (day, "x", "2024-04-01")]
        for day in range(1, 6)
    }
    items["items/3.csv"] = []
    shop = shop_of(
        tmp_path, spark, entity("people", "{type: timestamp, rename: at}"), entity("items", "date")
    )
    deliver(tmp_path, people | items)
    steps = {each["subject"]["name"]: each for each in shop.json("plan")["steps"]}
    assert steps["people"]["times"] == [
        {"slice": name, "source": "column", "declared": "seen", "time": None}
        for name in ("a.csv", "c.csv", "d.csv")
    ]
    assert shop.json("apply")["left"]["steps"] == []
    assert shown(shop, "people") == history(people)
    of_days = [(*each[:2], *(day and f"{day}T00:00" for day in each[2:])) for each in history(items)]
    assert shown(shop, "items") == sorted(of_days, key=str)

    # A late slice takes its place by its name, and a corrected one has the time that it says now.
    people[LATE] = [(2, "Rome", "2024-05-02T09:00")]
    people["people/d.csv"] = [(2, "Rome", "2024-05-03T11:00")]
    deliver(tmp_path, {name: people[name] for name in (LATE, "people/d.csv")})
    assert shop.run("decide", LATE, "place").code == 0
    assert shop.run("decide", "people/d.csv", "take").code == 0
    (step,) = shop.json("plan")["steps"]
    assert {each["slice"]: each["source"] for each in step["times"]} == {
        "b.csv": "column",
        "c.csv": "recorded",
        "d.csv": "column",
    }
    assert shop.json("apply")["left"]["steps"] == []
    assert shown(shop, "people") == history(people)


@pytest.mark.parametrize(
    "refused",
    [
        ("date", [[(1, "Rome", "")]], "slice", []),
        ("{}", [[(1, "Rome", "2024-05-01")]], "schema_drift", []),
        ("date", [[(1, "Rome", "2024-05-02")], [(2, "Bari", "2024-05-01")]], "backdated", ["0.csv"]),
    ],
)
def test_a_slice_without_a_time_that_is_later_is_refused_before_anything_is_written(
    tmp_path: Path, spark: SparkSession, refused: tuple[str, Sequence[Rows], str, list[str]]
) -> None:
    seen, slices, code, written = refused
    shop = shop_of(tmp_path, spark, entity("people", seen))
    deliver(tmp_path, {f"people/{number}.csv": rows for number, rows in enumerate(slices)})
    rehearsed = json.loads(shop.run("process", "people", "0.csv", "--rehearse", "-o", "json").out)
    assert (rehearsed["error"] or {}).get("code") == (None if written else code)
    done = json.loads(shop.run("process", "people", "-o", "json").out)
    assert done["error"]["code"] == code
    assert [each["slice"] for each in done["slices"]] == written
    assert (tmp_path / "lake/silver/people/_delta_log").exists() is bool(written)
    if code == "backdated":
        (step,) = shop.json("plan")["steps"]
        assert (step["status"], step["needs"]) == ("needs_consent", ["backdated"])
        assert shop.json("apply", "--allow", "backdated")["left"]["steps"] == []


@pytest.mark.nightly  # test_crash.py has runs that died, with times of slices
def test_slices_of_runs_that_died_get_the_time_that_is_in_them(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`processing-manifest.md`, "State": folded or one by one, before the commit or after it."""
    things = entity_of("historic", settings={"time": {"from": "day"}})
    days = [date(2024, 5, day) for day in range(1, 6)]
    lake.use(lake.store, is_dead=lambda holder: True)
    for some in (days[:4], days[4:]):
        for day in some:
            lake.put(things, f"s{day:%d}", [{"id": 1, "v": f"of {day}", "day": day}])
        for point in ("before_commit", "before_processed"):
            with dying(monkeypatch, point):
                lake.process(things)
        assert [done.is_adopted for done in lake.process(things).slices] == [True] * len(some)
    times = [f"{day}T00:00:00+00:00" for day in days]
    items = sorted(lake.items(), key=lambda item: item.item_id)
    records = [lake.store.records(item.item_id)[-1] for item in items]
    assert [each.content["processing_time"] for each in records] == times
    begins = lake.arrow(things).column("dlf_ValidFrom").to_pylist()
    assert sorted(at.isoformat() for at in begins) == times
