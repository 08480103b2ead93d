"""`maintain`: silver tables compacted, or what would be."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.cli.render.run import maintenance_line
from lakewright.lake.compaction import TableShape
from lakewright.targets.entity.maintenance import Maintenance

SHAPE = TableShape(files=23, small_files=22, size=5_000_000, marked=0.1)
WHY = ("22 files below 64 MiB",)


class Maintaining(FakeApp):
    """Has three entities, of which one has no table, one is fine and one is to be compacted."""

    def maintain(self, entity: str, *, is_dry: bool = False) -> Maintenance:
        self.asked.append((entity, is_dry))
        found = {"new": Maintenance(None), "fine": Maintenance(SHAPE), "many": Maintenance(SHAPE, WHY)}[
            entity
        ]
        return found if is_dry or not found.reasons else Maintenance(SHAPE, WHY, 22, 1, is_done=True)


def app() -> Maintaining:
    made = Maintaining()
    names = ("new", "fine", "many")
    entities = {name: SimpleNamespace(name=name) for name in names}
    project: Any = SimpleNamespace(config={}, entities=entities, entity=lambda name: entities[name])
    made.project = project
    return made


def test_all_entities_are_maintained_unless_some_are_named() -> None:
    answered = call_with(app(), "maintain")
    assert answered.code == 0
    assert answered.app.asked == [("new", False), ("fine", False), ("many", False)]
    assert "new has no table yet" in answered.out
    assert "compacted 22 files into 1 (22 files below 64 MiB)" in answered.out
    assert answered.last_line == "Done. COMPACTED=1 WAITING=0 FINE=2"


def test_a_dry_run_says_what_is_to_be_done() -> None:
    answered = call_with(app(), "maintain", "many", "--dry-run")
    assert answered.app.asked == [("many", True)]
    assert "to be compacted (22 files below 64 MiB)" in answered.out
    assert answered.last_line == "Done. COMPACTED=0 WAITING=1 FINE=0"


def test_the_document_has_the_shape_of_each_table() -> None:
    document = json.loads(call_with(app(), "maintain", "-o", "json").out)
    assert list(document) == ["new", "fine", "many"]
    assert document["many"] == {
        "files": 23,
        "small_files": 22,
        "bytes": 5_000_000,
        "marked": 0.1,
        "reasons": list(WHY),
        "done": True,
        "files_removed": 22,
        "files_added": 1,
        "undo_window": None,
        "undo_window_begins": False,
    }


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            Maintenance(SHAPE, kept="90d", retention={"a": "b"}),
            "files of the last 90d are to be kept for undo",
        ),
        (Maintenance(SHAPE, kept="90d"), "nothing to do; files of the last 90d are kept for undo"),
        (
            Maintenance(SHAPE, WHY, 22, 1, is_done=True, kept="90d"),
            "1; files of the last 90d are kept for undo",
        ),
    ],
)
def test_the_undo_window_is_said(found: Maintenance, told: str) -> None:
    """Issue 15, part 6: maintenance knows what an undo needs, and says so."""
    assert told in str(maintenance_line(found.as_json()))
