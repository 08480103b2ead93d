"""`doctor ENTITY`: what it says of a broken table, and when it repairs one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands import InProcess
from tests.documents import checked
from tests.people import write_people
from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.doctor import Diagnosis
from lakewright.errors import NotInstalled
from lakewright.lake.commit import Commit
from lakewright.targets.entity.table_rules import Finding

OVERLAP = Finding("overlap", "versions begin before the one before them ends", 7, ({"id": "1"}, {"id": "2"}))
BY_HAND = Commit(3, datetime(2024, 5, 1, 12, tzinfo=UTC), "UPDATE", {}, {})
BROKEN = Diagnosis(4, (OVERLAP,), {"overlap": BY_HAND}, (BY_HAND,))


def repairable(**changes: Any) -> Any:
    row = {"key": {"id": "1"}, "valid_from": "2024-01-01", "changes": {"dlf_ValidTo": [None, "2024-02-01"]}}
    plan = {"changed": 1, "removed": 0, "doubled": 0, "shown": (row,), "left": (), **changes}
    as_json = {"changed": plan["changed"]}
    return SimpleNamespace(address="/lake/t", **plan, as_json=lambda: as_json)


def test_what_is_broken_is_told_with_samples_since_when_and_what_to_do() -> None:
    answered = call_with(FakeApp(diagnosis=BROKEN), "doctor", "orders")
    assert answered.code == 1
    assert (
        "NOT OK  rows      7 versions begin before the one before them ends: id=1; id=2 …; "
        "since version 3 of 2024-05-01 12:00 UTC (UPDATE)" in answered.out
    )
    assert "do: `lakewright doctor orders --repair` shows what would repair it." in answered.out
    assert "SKIPPED writers   1 commit not by Lakewright changed rows" in answered.out
    found = checked(json.loads(call_with(FakeApp(diagnosis=BROKEN), "doctor", "orders", "-o", "json").out))
    (finding,) = found["diagnosis"]["findings"]
    assert (finding["rule"], finding["rows"], finding["since"]["version"]) == ("overlap", 7, 3)


def test_a_sound_table_is_told_too() -> None:
    answered = call_with(FakeApp(diagnosis=Diagnosis(4)), "doctor", "orders")
    assert answered.code == 0
    assert "OK      rows      every rule holds in version 4" in answered.out


def test_rows_that_can_not_be_looked_at_hide_nothing_else() -> None:
    answered = call_with(FakeApp(error=NotInstalled("no Java", remedy="Install one.")), "doctor", "orders")
    assert answered.code == 1
    assert "OK      manifest" in answered.out
    assert "NOT OK  rows      no Java" in answered.out


def test_a_table_that_can_not_be_read_is_told_once_b5(tmp_path: Path) -> None:
    shop = InProcess(write_people(tmp_path))
    log = tmp_path / "lake" / "silver" / "people" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{1:020}.checkpoint.parquet").write_bytes(b"PAR1")
    (log / "_last_checkpoint").write_text('{"version": 1, "size": 1}')
    answered = shop.run("doctor", "people")
    assert answered.code == 1
    assert answered.out.count("is damaged") == 1, answered.all
    assert "SKIPPED rows      not checked: see silver" in answered.out


def test_a_repair_shows_rows_before_and_after_and_writes_only_if_told() -> None:
    app = FakeApp(repairable=repairable())
    answered = call_with(app, "doctor", "orders", "--repair")
    assert answered.code == 1
    assert "1 row of /lake/t would change" in answered.out
    assert "dlf_ValidTo: None -> 2024-02-01" in answered.out
    assert "Nothing was written: give --yes to repair." in answered.err
    assert app.asked == [("orders", False)]

    told = call_with(app, "doctor", "orders", "--repair", "--yes", "--author", "ada", "--reason", "by hand")
    assert told.code == 0
    assert app.asked[-1] == ("orders", "ada", "by hand")
    assert "Repaired in version 8" in told.err


def test_a_repair_as_json() -> None:
    answered = call_with(
        FakeApp(repairable=repairable()), "doctor", "orders", "--repair", "--yes", "-o", "json"
    )
    assert checked(json.loads(answered.out)) == {"repair": {"changed": 1}, "version": 8}
    nothing = call_with(FakeApp(), "doctor", "orders", "--repair", "-o", "json")
    assert (nothing.code, checked(json.loads(nothing.out))) == (0, {"repair": None, "version": None})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"changed": 0, "shown": (), "doubled": 2, "left": (OVERLAP,)},
            "2 rows could only be repaired by removing",
        ),
        ({"changed": 30, "left": (OVERLAP,)}, "… and 29 more"),
        ({"removed": 2}, "2 would go"),
    ],
)
def test_what_a_repair_leaves_is_told(changes: dict[str, Any], said: str) -> None:
    answered = call_with(FakeApp(repairable=repairable(**changes)), "doctor", "orders", "--repair", "--yes")
    assert said in answered.out
    assert answered.code == (1 if "left" in changes else 0)
    assert ("stays: 7 versions begin" in answered.out) is ("left" in changes)


def test_a_repair_needs_an_entity() -> None:
    assert call_with(FakeApp(), "doctor", "--repair").code == 2
