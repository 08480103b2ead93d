"""Which pending slices are folded into one commit; why others are processed one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.unit.slices.test_recover_from_log import Place, pa

from lakewright.manifest.item import Item
from lakewright.plan.permissions import Permissions
from lakewright.slices import fold
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingContext, ProcessingOptions
from lakewright.slices.fold import FoldChoice, choose_fold, one_by_one_reason, planned_folds
from lakewright.spec.models.entity import Entity, Strategy

DAYS = ("s1", "s2", "s3", "s4", "s5", "s6")


def situation(folder: Path, settings: str, processtype: str = "merge", **options: Any) -> tuple[Any, Entity]:
    project = f"""
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: {processtype}
    columns: [{{name: id, fieldroles: [businesskey]}}]
    watermark: [{{column_name: at, expression: "${{last_value}}"}}]
    settings: {{{settings}}}
"""
    workspace = make_workspace(folder, project)
    context = make_context(workspace)
    entity = workspace.entity("orders")
    processing = ProcessingContext(
        lake=workspace.lake,
        ledger=context.ledger,
        holder=context.leases.holder,
        application=application_of("tests", entity),
        clock=context.clock,
        options=ProcessingOptions(**options),
    )
    return processing, entity


WINDOW = "delete_missing: true, delete_scope: closed"
FULL_SCOPE = "delete_missing: true, delete_scope: full"


@pytest.mark.parametrize(
    ("settings", "processtype", "options", "said"),
    [
        ("", "merge", {}, None),
        (FULL_SCOPE, "historic", {}, None),
        ("schema_drift: fail", "historic", {}, None),
        ("fold: false", "merge", {}, "fold: false"),
        ("sequence_by: at", "merge", {}, "sequence_by"),
        (WINDOW, "merge", {}, "window of delete_missing"),
        (WINDOW, "full", {}, None),
        ("", "merge", {"strategy": Strategy.FULL}, "the strategy full is not the entity's own"),
        ("", "historic", {"permissions": Permissions(allow_backdated=True)}, "--allow-backdated"),
        ("table_properties: {delta.enableChangeDataFeed: 'true'}", "merge", {}, "enableChangeDataFeed"),
    ],
)
def test_slices_are_processed_one_by_one_where_the_table_in_between_matters(
    tmp_path: Path, settings: str, processtype: str, options: dict[str, Any], said: str | None
) -> None:
    context, entity = situation(tmp_path, settings, processtype, **options)
    reason = one_by_one_reason(context, entity)
    assert (reason is None) if said is None else said in str(reason)


def items_of(place: Place) -> list[Item]:
    return list(place.look().ready)


def test_as_many_slices_are_folded_as_fit_and_a_few_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, *DAYS)
    items = items_of(place)

    def chosen(late: frozenset[str] = frozenset(), count: int = len(DAYS)) -> int:
        return choose_fold(place.bench, place.entity, items[:count], late=late).count

    assert chosen() == 6
    assert chosen(count=4) == 4
    assert chosen(count=3) == 1
    assert chosen(late=frozenset({items[0].item_id})) == 1
    assert chosen(late=frozenset({items[4].item_id})) == 4
    monkeypatch.setattr(fold, "MOST_BYTES", 5 * len("s1"))
    assert chosen() == 5
    monkeypatch.setattr(fold, "MOST", 4)
    assert chosen() == 4
    late: frozenset[str] = frozenset()
    told = "4 slices are folded into 1 commit"
    assert planned_folds(place.bench, place.entity, items, late=late) == told
    assert planned_folds(place.bench, place.entity, items[:3], late=late) is None


def numbered(place: Place, items: list[Item], **numbers: int) -> list[Item]:
    key = place.application.key
    return [
        replace(item, tokens={key: numbers[name]}) if (name := item.item_id[-2:]) in numbers else item
        for item in items
    ]


def test_slices_share_the_number_that_one_of_them_has_from_an_earlier_attempt(tmp_path: Path) -> None:
    place = Place(tmp_path, *DAYS)

    def chosen(**numbers: int) -> FoldChoice:
        items = numbered(place, items_of(place), **numbers)
        return choose_fold(place.bench, place.entity, items, late=())

    assert chosen(s2=3) == FoldChoice(6, 3)
    assert chosen(s2=3, s5=3) == FoldChoice(6, 3)
    assert chosen(s2=3, s5=4) == FoldChoice(4, 3)


def test_a_number_that_the_table_has_passed_is_not_shared(tmp_path: Path) -> None:
    """s1 was processed by itself with the number 3 that s1 to s4 were to share."""
    place = Place(tmp_path, "s1", *DAYS[1:])
    place.commit(3, "s1")
    place.look()
    items = numbered(place, items_of(place), s2=3, s3=3, s4=3)
    assert [item.item_id[-2:] for item in items] == list(DAYS[1:])
    assert choose_fold(place.bench, place.entity, items, late=()) == FoldChoice(5)


def test_a_slice_whose_commit_has_landed_is_recorded_by_itself(tmp_path: Path) -> None:
    place = Place(tmp_path, *DAYS)
    items = items_of(place)
    place.commit(3, "s1")
    assert choose_fold(place.bench, place.entity, numbered(place, items, s1=3), late=()) == FoldChoice(1)


def test_a_table_that_is_to_be_adopted_takes_its_first_slice_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, *DAYS)
    write_deltalake(place.silver, pa.table({"id": [1]}))
    monkeypatch.setattr(fold, "is_adoptable", lambda *_: True)
    assert choose_fold(place.bench, place.entity, items_of(place), late=()) == FoldChoice(1)
