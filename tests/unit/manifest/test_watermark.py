"""Watermarks keep their type and only advance: `processing-strategies.md`, "Merge Strategy"."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.records import COUNTRIES, REGIONS

from lakewright.errors import SequenceConflict, UsageError
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Application, Author
from lakewright.manifest.store import Document, Write
from lakewright.manifest.watermarks import Value, Watermark, WatermarkChange, Watermarks
from lakewright.testing import MemoryStore

KATHMANDU = timezone(timedelta(hours=5, minutes=45))


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (7, {"type": "long", "value": 7}),
        (2**62, {"type": "long", "value": 2**62}),
        (0.1, {"type": "double", "value": 0.1}),
        (Decimal("12.500"), {"type": "decimal", "value": "12.500"}),
        (date(2022, 1, 2), {"type": "date", "value": "2022-01-02"}),
        (
            datetime(2022, 1, 2, 5, 45, 0, 1, tzinfo=KATHMANDU),
            {"type": "timestamp", "value": "2022-01-02T00:00:00.000001Z"},
        ),
        (datetime(2022, 1, 2), {"type": "timestamp", "value": "2022-01-02T00:00:00.000000Z"}),
        ("0010", {"type": "string", "value": "0010"}),
    ],
)
def test_values_keep_their_type_and_precision(value: Value, json: dict[str, object]) -> None:
    watermark = Watermark.of(value)
    assert watermark.as_json() == json
    assert Watermark.from_json(json) == watermark
    expected = value.replace(tzinfo=UTC) if isinstance(value, datetime) and not value.tzinfo else value
    assert watermark.python == expected


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (10, 9),
        (Decimal("9.10"), 9),
        (0.2, 0.1),
        ("b", "a"),
        (date(2022, 1, 10), date(2022, 1, 9)),
        (datetime(2022, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC)),
    ],
)
def test_watermarks_compare_by_their_type(later: Value, earlier: Value) -> None:
    assert Watermark.of(later).is_after(Watermark.of(earlier))
    assert not Watermark.of(earlier).is_after(Watermark.of(later))
    assert not Watermark.of(later).is_after(Watermark.of(later))


def test_a_date_compares_as_its_first_moment() -> None:
    day, noon = Watermark.of(date(2025, 1, 2)), Watermark.of(datetime(2025, 1, 2, 12, tzinfo=UTC))
    assert noon.is_after(day)
    assert not day.is_after(noon)
    assert Watermark.of(date(2025, 1, 3)).is_after(noon)
    assert not Watermark.of(datetime(2025, 1, 2, tzinfo=UTC)).is_after(day)


def test_after_a_change_of_type_the_new_value_counts() -> None:
    assert Watermark.of("2022-01-01").is_after(Watermark.of(date(2023, 1, 1)))


def test_nan_is_after_no_value_and_can_be_stored() -> None:
    nan = Watermark.of(float("nan"))
    assert nan.as_json() == {"type": "double", "value": "nan"}
    assert not nan.is_after(Watermark.of(1.0))
    assert Watermark.of(float("inf")).is_after(Watermark.of(1.0))


@pytest.mark.parametrize(
    "document",
    [{"type": "uuid", "value": "x"}, {"type": "date", "value": "soon"}, {"type": "decimal", "value": "x"}],
)
def test_an_unreadable_watermark_is_refused(document: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="a watermark of type"):
        Watermark.from_json(document)


def change(watermarks: Watermarks, application: Application, value: Value | None) -> WatermarkChange:
    made = None if value is None else Watermark.of(value)
    number = len(list(watermarks.changes()))
    ledger = Ledger(watermarks.store, Author.named("ada"), ids=lambda: f"change-{number}")
    return ledger.set_watermark(application, "day", made, f"reason {number}")


def test_an_operator_lowers_and_deletes_a_watermark() -> None:
    watermarks = Watermarks(MemoryStore())
    change(watermarks, REGIONS, date(2022, 3, 1))
    change(watermarks, REGIONS, date(2022, 1, 1))
    change(watermarks, COUNTRIES, date(2022, 2, 1))
    assert watermarks.last(REGIONS) == {"day": Watermark("date", "2022-01-01")}
    assert [(s.application, s.item_id, s.author, s.reason) for s in watermarks.all()] == [
        (COUNTRIES, None, "ada", "reason 2"),
        (REGIONS, None, "ada", "reason 1"),
    ]
    change(watermarks, REGIONS, None)
    assert watermarks.last(REGIONS) == {}
    change(watermarks, REGIONS, None)


def test_an_operators_change_is_recorded_with_author_time_reason_and_value_before() -> None:
    watermarks = Watermarks(MemoryStore())
    done = [change(watermarks, REGIONS, value) for value in (3, 1, None, None)]
    told = [(c.before and c.before.value, c.watermark and c.watermark.value, c.reason) for c in done]
    assert told == [
        (None, 3, "reason 0"),
        (3, 1, "reason 1"),
        (1, None, "reason 2"),
        (None, None, "reason 3"),
    ]
    assert sorted(watermarks.changes(), key=lambda c: c.reason) == done
    assert [c.at for c in watermarks.changes()] == sorted((c.at for c in done), reverse=True)


class Overtaken(MemoryStore):
    """A store in which a slice advances the watermark right after it was read."""

    def document(self, kind: str, key: str) -> Document | None:
        seen = super().document(kind, key)
        self.write(
            Write(puts=Watermarks(self).puts_for_item(REGIONS, "item", {"day": Watermark.of(9).as_json()}))
        )
        return seen


@pytest.mark.parametrize("value", [1, None])
def test_an_operator_overwrites_no_unseen_watermark(value: int | None) -> None:
    watermarks = Watermarks(Overtaken())
    with pytest.raises(SequenceConflict):
        change(watermarks, REGIONS, value)
    assert watermarks.last(REGIONS) == {"day": Watermark.of(9)}
    assert list(watermarks.changes()) == []


def test_watermarks_of_an_application_exclude_those_of_names_that_extend_it() -> None:
    watermarks = Watermarks(MemoryStore())
    outer, inner = Application.named("a"), Application.named("a/b")
    change(watermarks, inner, 1)
    assert watermarks.last(outer) == {}
    assert watermarks.last(inner) == {"day": Watermark("long", 1)}


def test_only_greater_watermarks_are_saved() -> None:
    store = MemoryStore()
    watermarks = Watermarks(store)
    change(watermarks, REGIONS, 5)
    for brought, last in ((4, 5), (5, 5), (6, 6)):
        puts = watermarks.puts_for_item(REGIONS, "item", {"day": Watermark.of(brought).as_json()})
        assert len(puts) == (1 if brought > 5 else 0)
        store.write(Write(puts=puts))
        assert watermarks.last(REGIONS)["day"].value == last
