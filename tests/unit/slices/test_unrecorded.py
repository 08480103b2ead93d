"""Slices whose end the manifest could not record: they count as neither processed, failed nor waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewright.errors import LakewrightError, NullKeyError, StoreUnavailable
from lakewright.manifest.item import Item
from lakewright.slices import processing
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.fold import FoldResult, fold_slices
from lakewright.slices.result import ProcessResult, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary

ITEMS = [Item(f"file:///bronze/s{number}") for number in range(1, 5)]
FULL = StoreUnavailable("the manifest can't be written: database or disk is full")


class _Beats:
    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> _Beats:
        return self

    def __exit__(self, *_: object) -> None: ...

    def keep(self, *_: object) -> None: ...

    def drop(self, *_: object) -> None: ...


@contextmanager
def _span(*_: object, **__: object) -> Iterator[Any]:
    yield SimpleNamespace(note=lambda **_: None)


class _Processor:
    """Processes slices until the manifest fails at one."""

    entity = SimpleNamespace(name="orders", identity="orders", called="orders", declared_digest="")

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.told: list[str] = []
        store = SimpleNamespace(read=lambda _: {})
        self.context: Any = SimpleNamespace(
            ledger=SimpleNamespace(store=store, failed=self._full),
            lease=timedelta(minutes=1),
            is_stopping=lambda: False,
            is_cut_off=lambda: False,
            report=lambda _: None,
            warn=self.told.append,
        )

    @staticmethod
    def _full(*_: object, **__: object) -> None:
        raise FULL

    def is_at_fault(self, _: LakewrightError) -> bool:
        return False

    def process(self, claim: Any, _: object) -> SliceResult:
        name = claim.item.item_id.rpartition("/")[2]
        if name == self.failing:
            raise FULL
        return SliceResult(name, claim.item.item_id, Summary(Strategy.MERGE))


def run(
    monkeypatch: pytest.MonkeyPatch, processor: _Processor, folded: FoldResult | None = None
) -> ProcessResult:
    monkeypatch.setattr(processing, "Heartbeat", _Beats)
    monkeypatch.setattr(processing, "span", _span)
    monkeypatch.setattr(processing, "one_by_one_reason", lambda *_: None if folded else "asked for")
    monkeypatch.setattr(processing, "_fold", lambda *_: folded)
    monkeypatch.setattr(
        processing, "_claim", lambda _, item: SimpleNamespace(item=item, item_id=item.item_id, lease=None)
    )
    return processing._process(cast("SliceProcessor", processor), ITEMS)


def test_a_slice_whose_end_is_not_recorded_neither_failed_nor_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, _Processor("s2"), None)
    assert [done.name for done in result.slices] == ["s1"]
    assert (result.failed, result.unrecorded, result.waiting) == ((), ("s2",), ("s3", "s4"))
    assert result.status.is_failure


def test_of_a_fold_the_slices_that_were_recorded_are_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    done = SliceResult("s1", ITEMS[0].item_id, Summary(Strategy.MERGE))
    folded = FoldResult((done,), version=3, unrecorded=("s2", "s3"), error=FULL)
    result = run(monkeypatch, _Processor(""), folded)
    assert ([done.name for done in result.slices], result.unrecorded) == (["s1"], ("s2", "s3"))
    assert (result.errors, result.waiting) == ((FULL,), ("s4",))
    assert "3 slices, s1 to s3, were folded into version 3" in result.notes


def test_a_fold_that_the_manifest_ends_names_all_its_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    claims: Any = [SimpleNamespace(item=item, item_id=item.item_id, lease=None) for item in ITEMS[:2]]
    processor: Any = _Processor("")
    processor.unchanged_slice = processor._full
    found = fold_slices(processor, claims, cast("Any", _Beats()))
    assert (found.slices, found.unrecorded, found.error) == ((), ("s1", "s2"), FULL)


def test_slices_of_a_fold_are_told_if_the_manifest_can_not_be_read_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = tuple(SliceResult(f"s{n}", ITEMS[n - 1].item_id, Summary(Strategy.MERGE)) for n in (1, 2))
    processor = _Processor("")
    processor.context.ledger.store.read = processor._full
    result = run(monkeypatch, processor, FoldResult(done, version=3))
    assert (result.slices, result.errors, result.waiting) == (done, (FULL,), ("s3", "s4"))
    assert (result.is_unrecorded, result.unrecorded) == (True, ())


def test_a_slice_that_failed_is_told_if_the_manifest_can_not_be_read_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = NullKeyError("null in id")

    class Failing(_Processor):
        def is_at_fault(self, found: LakewrightError) -> bool:
            return found is error

        def process(self, claim: Any, beats: object) -> SliceResult:
            if claim.item is ITEMS[1]:
                raise error
            return super().process(claim, beats)

    processor = Failing("")
    processor.context.ledger.item = processor._full
    result = run(monkeypatch, processor)
    assert [done.name for done in result.slices] == ["s1"]
    assert (result.failed, result.errors) == (("s2",), (error, FULL))
    assert (result.unrecorded, result.waiting) == ((), ("s3", "s4"))


def test_what_was_processed_is_told_if_the_manifest_does_not_tell_what_holds_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processing, "holding_error", _Processor._full)
    assert processing._holding_errors(cast("Any", None), cast("Any", None), cast("Any", None)) == (FULL,)


def test_why_a_slice_failed_is_told_if_that_can_not_be_recorded() -> None:
    processor = _Processor("")
    claim: Any = SimpleNamespace(item=ITEMS[0])
    error = NullKeyError("null in id")
    with pytest.raises(StoreUnavailable):
        SliceProcessor._record_failure(cast("SliceProcessor", processor), claim, error, error)
    assert processor.told == ["orders: s1 failed, which could not be recorded: null in id"]
