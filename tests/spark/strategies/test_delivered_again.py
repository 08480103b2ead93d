"""Undo of a slice after later ones were processed again, perhaps with another content."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.model.strategies import Model, Record
from tests.spark.strategies.bench import SmallLake, entity, hours
from tests.spark.strategies.rewinding import rebuild_in, undo_in

from lakewright.errors import DataLossError, SliceError
from lakewright.manifest.verdict import Verdict
from lakewright.slices.discovery import list_slices, slice_name
from lakewright.spec.models.slice_folder import SliceFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright.spec.models.entity import Entity

LATER = 24 * 60
"""An hour after those of all first deliveries."""


def deliver_again(lake: SmallLake, things: Entity, name: str, rows: list[dict[str, Any]]) -> None:
    """Put a slice in the place of one that was processed, and process it and those after it."""
    requeue(lake, things, lake.put(things, name, rows))
    lake.now = max(lake.now, hours(LATER))
    assert lake.process(things).error is None


def requeue(lake: SmallLake, things: Entity, path: Path) -> None:
    """Let a slice be processed again, and those after it, with their present content."""
    items = {slice_name(item): item.item_id for item in lake.items()}
    for found in list_slices(things.places(lake.lake.settings).slices, lake.lake):
        if found.name >= path.name:
            lake.ledger.requeue(items[found.name], "delivered again", fingerprint=found.fingerprint)


def twice_delivered(lake: SmallLake, *ids: int) -> Entity:
    """Return an entity of Merge whose second slice, first with 2 and 3, came again with these keys."""
    things = entity()
    for day, each in enumerate(([1, 2], [2, 3]), 1):
        lake.put(things, f"2024-01-0{day}", [{"id": n, "v": f"{day}"} for n in each])
    assert lake.process(things).error is None
    deliver_again(lake, things, "2024-01-02", [{"id": n, "v": "again"} for n in ids])
    return things


def test_a_slice_that_was_delivered_again_is_applied_as_it_was_processed_last(lake: SmallLake) -> None:
    """The first delivery is gone from bronze, and the table does not show it any more."""
    things = twice_delivered(lake, 2, 3)
    undo_in(lake, things, "2024-01-01")
    assert lake.rows(things, "id", "v") == [(2, "again"), (3, "again")]
    verdicts = {slice_name(item): item.verdict(lake.bench(things).application) for item in lake.items()}
    assert verdicts == {"2024-01-01": Verdict.SKIPPED, "2024-01-02": Verdict.PROCESSED}


@pytest.mark.nightly
def test_a_row_of_a_first_delivery_stands_against_an_undo_until_it_is_delivered_again(
    lake: SmallLake,
) -> None:
    things = twice_delivered(lake, 2)
    before = lake.rows(things)
    with pytest.raises(DataLossError, match="2024-01-02 of things was processed more than once") as refused:
        undo_in(lake, things, "2024-01-01")
    assert "1 row gone, 0 new, 2 equal" in refused.value.message
    assert lake.rows(things) == before
    assert not list(lake.folder(things).parent.glob("*__rebuild"))
    deliver_again(lake, things, "2024-01-02", [{"id": 2, "v": "last"}, {"id": 3, "v": "last"}])
    undo_in(lake, things, "2024-01-01")
    assert lake.rows(things, "id", "v") == [(2, "last"), (3, "last")]


@pytest.mark.nightly
def test_versions_of_a_first_delivery_stand_against_an_undo_until_the_table_is_built_again(
    lake: SmallLake,
) -> None:
    things = entity("historic")
    for day, ids in enumerate(("12", "23", "34"), 1):
        lake.load(things, f"2024-01-0{day}", [{"id": int(n), "v": f"{day}"} for n in ids])
    deliver_again(lake, things, "2024-01-02", [{"id": 2, "v": "again"}])
    before = lake.rows(things)
    with pytest.raises(DataLossError, match="2024-01-02 of things was processed more than once"):
        undo_in(lake, things, "2024-01-01")
    assert lake.rows(things) == before
    rebuild_in(lake, things)
    undo_in(lake, things, "2024-01-01")
    assert lake.rows(things, "id", "v", "dlf_ValidTo") == [(2, "again", None), (3, "3", None), (4, "3", None)]


@pytest.mark.nightly
def test_a_slice_whose_new_times_were_accepted_is_not_called_changed_after_an_undo(lake: SmallLake) -> None:
    """`manifest accept`: an undo asked for the former files."""
    things = entity()
    for day in (1, 2):
        lake.load(things, f"2024-01-0{day}", [{"id": day, "v": "a"}])
    bronze = Path(things.places(lake.lake.settings).bronze)
    os.utime(bronze / "2024-01-02", (1, 1))
    (item,) = (each for each in lake.items() if slice_name(each) == "2024-01-02")
    with pytest.raises(SliceError, match="2024-01-02 has changed since it was processed"):
        undo_in(lake, things, "2024-01-01")
    now = list_slices(SliceFolder(str(bronze)), lake.lake)[1].fingerprint
    lake.ledger.accept(item.item_id, "copied", fingerprint=now)
    undo_in(lake, things, "2024-01-01")
    assert lake.rows(things, "id", "v") == [(2, "a")]
    assert lake.ledger.item(item.item_id).fingerprint == now


@dataclass(frozen=True)
class Applied:
    """A slice that the model has applied."""

    name: str
    values: dict[int, str]
    at: int


def model_of(slices: Sequence[Applied], scope: str | None) -> list[tuple[Any, ...]]:
    """Return the rows that the model has after slices."""
    model = Model("merge", scope)
    for each in slices:
        records = [Record((key,), {"v": v}, {"v": v}) for key, v in each.values.items()]
        model.apply(records, each.at, each.name)
    rows = ((r.record.key[0], r.record.stored["v"], r.deleted, float(r.seen), r.file) for r in model.rows)
    return sorted(rows, key=repr)


def values_of(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows without their `lastSeen` and their slice."""
    return [row[:3] for row in rows]


def each_once(slices: Sequence[Applied]) -> list[Applied]:
    last = {each.name: each for each in slices}
    return [each for each in slices if last[each.name] is each]


@pytest.mark.nightly
@pytest.mark.parametrize("scope", [None, "full"])
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_an_undo_gives_the_model_of_all_other_slices_or_leaves_the_table(
    lake: SmallLake, seed: int, scope: str | None
) -> None:
    """It is refused exactly where slices that are applied once do not give the model's table."""
    chosen, columns = Random(seed), ("id", "v", "dlf_deleted", "dlf_lastSeen", "dlf_source_filename")
    things = entity(settings={"delete_missing": True, "delete_scope": scope} if scope else {})
    names, sent = ("s1", "s2", "s3"), dict[str, dict[int, str]]()
    history: list[Applied] = []

    def drawn(least: int) -> dict[int, str]:
        return {key: chosen.choice("ab") for key in chosen.sample(range(4), chosen.randint(least, 4))}

    def process(name: str, values: dict[int, str]) -> None:
        history.append(Applied(name, values, len(history) + 1))
        at = hours(len(history)).isoformat()
        assert lake.process(things, name, processing_time=at).error is None

    def put(name: str, values: dict[int, str]) -> Path:
        sent[name] = values
        return lake.put(things, name, [{"id": key, "v": v} for key, v in values.items()])

    for name in names:
        put(name, drawn(1))
        process(name, sent[name])
    first = chosen.randrange(1, 3)
    requeue(lake, things, put(names[first], drawn(3)))
    for name in names[first:]:
        process(name, sent[name])
    before = model_of(history, scope)
    assert lake.rows(things, *columns) == before

    once = each_once(history)
    if values_of(model_of(once, scope)) == values_of(before):
        undo_in(lake, things, "s1")
        assert lake.rows(things, *columns) == model_of(once[1:], scope)
    else:
        with pytest.raises(DataLossError, match="processed more than once"):
            undo_in(lake, things, "s1")
        assert lake.rows(things, *columns) == before
