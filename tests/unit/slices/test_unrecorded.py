"""Slices whose end the manifest could not record: they count as neither processed, failed nor waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewright.errors import LakewrightError, NullKeyError, StoreUnavailable
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.slices import processing
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.fold import FoldChoice
from lakewright.slices.result import ProcessResult, SliceReport, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.stores.heartbeat import Heartbeat
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


class _Processor(SliceProcessor):
    """Processes slices until the manifest fails at one."""

    def __init__(self, failing: str = "", error: LakewrightError = FULL) -> None:
        self.failing, self.error = failing, error
        self.told: list[str] = []
        self.reports: list[SliceReport] = []
        self.late, self.one_by_one = frozenset(), "asked for"
        self.entity: Any = SimpleNamespace(name="orders", called="orders", declared_digest="")
        self.context: Any = SimpleNamespace(
            ledger=SimpleNamespace(store=SimpleNamespace(read=lambda _: {}), failed=self.full),
            lease=timedelta(minutes=1),
            is_stopping=lambda: False,
            is_cut_off=lambda: False,
            report=self.reports.append,
            warn=self.told.append,
        )

    @staticmethod
    def full(*_: object, **__: object) -> Any:
        raise FULL

    def translated(self, error: Exception, name: str) -> LakewrightError:
        del name
        return cast("LakewrightError", error)

    def is_at_fault(self, error: LakewrightError) -> bool:
        return isinstance(error, NullKeyError)

    def _commit(self, claims: Sequence[Claim], heartbeat: Heartbeat) -> ProcessResult:
        del heartbeat
        names = [claim.item_id.rpartition("/")[2] for claim in claims]
        if self.failing in names:
            raise self.error
        return ProcessResult(tuple(map(_done, names)))


def _done(name: str) -> SliceResult:
    return SliceResult(name, f"file:///bronze/{name}", Summary(Strategy.MERGE, delta_version=3))


def run(
    monkeypatch: pytest.MonkeyPatch, processor: _Processor, *, folded: ProcessResult | None = None
) -> ProcessResult:
    monkeypatch.setattr(processing, "Heartbeat", _Beats)
    monkeypatch.setattr(processing, "one_by_one_reason", lambda *_: None if folded else "asked for")
    monkeypatch.setattr(processing, "choose_fold", lambda *_, **__: FoldChoice(3))
    monkeypatch.setattr(processing, "_claim", lambda _, item, **__: _claim(item))
    if folded is not None:
        monkeypatch.setattr(processor, "_commit", lambda *_: folded)
    return processing._process(processor, ITEMS)


def _claim(item: Item) -> Claim:
    return cast("Claim", SimpleNamespace(item=item, item_id=item.item_id, lease=None, token=1))


def test_a_slice_whose_end_is_not_recorded_neither_failed_nor_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = _Processor("s2")
    result = run(monkeypatch, processor)
    assert [done.name for done in result.slices] == ["s1"]
    assert (result.failed, result.unrecorded, result.waiting) == ((), ("s2",), ("s3", "s4"))
    assert result.status.is_failure
    assert [(each.slice, each.error, each.is_failed) for each in processor.reports] == [("s2", FULL, False)]


def test_of_a_fold_the_slices_that_were_recorded_are_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    folded = ProcessResult((_done("s1"),), errors=(FULL,), unrecorded=("s2", "s3"))
    result = run(monkeypatch, _Processor(), folded=folded)
    assert ([done.name for done in result.slices], result.unrecorded) == (["s1"], ("s2", "s3"))
    assert (result.errors, result.waiting) == ((FULL,), ("s4",))


@pytest.mark.parametrize("recorded", [0, 1])
def test_slices_of_one_commit_are_recorded_as_far_as_the_manifest_can_be_written(
    monkeypatch: pytest.MonkeyPatch, recorded: int
) -> None:
    processor, written = _Processor(), list[str]()
    claims = [_claim(item) for item in ITEMS[:3]]
    claimed = tuple(
        SimpleNamespace(claim=claim, slice_=SimpleNamespace(name=claim.item_id)) for claim in claims
    )
    load: Any = SimpleNamespace(content=lambda summary: {"metrics": summary.as_json()})
    applied = [(load, Summary(Strategy.MERGE, delta_version=3))] * 3

    def record(claim: Claim, content: Mapping[str, Any]) -> None:
        assert (content["folded"], content["delta_version"]) == (3, 3)
        if len(written) == recorded:
            raise FULL
        written.append(claim.item_id)

    for name, found in {
        "_claimed": lambda _: claimed,
        "_apply_strategy": lambda *_: (applied, {}),
        "warn_of": lambda *_: (),
        "_record": record,
    }.items():
        monkeypatch.setattr(processor, name, found)
    result = processor._apply(claims, lambda: None, cast("Heartbeat", _Beats()))
    assert len(result.slices) == len(written) == recorded
    assert (result.unrecorded, result.errors) == (("s1", "s2", "s3")[recorded:], (FULL,))
    assert result.notes == ("3 slices, s1 to s3, were folded into version 3",)


def test_a_fold_that_the_manifest_ends_names_all_its_slices() -> None:
    processor = _Processor("s2")
    found = processor.process([_claim(item) for item in ITEMS[:2]], cast("Heartbeat", _Beats()))
    assert (found.slices, found.unrecorded, found.errors) == ((), ("s1", "s2"), (FULL,))
    assert processor.reports == []


def test_slices_of_a_fold_are_told_if_the_manifest_can_not_be_read_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = (_done("s1"), _done("s2"))
    processor = _Processor()
    processor.context.ledger.store.read = processor.full
    result = run(monkeypatch, processor, folded=ProcessResult(done))
    assert (result.slices, result.errors, result.waiting) == (done, (FULL,), ("s3", "s4"))
    assert (result.is_unrecorded, result.unrecorded) == (True, ())


def test_what_was_processed_is_told_if_the_manifest_does_not_tell_what_holds_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processing, "holding_error", _Processor.full)
    assert processing._holding_errors(cast("Any", None), cast("Any", None), cast("Any", None)) == (FULL,)


def test_why_a_slice_failed_is_told_if_that_can_not_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = _Processor("s2", NullKeyError("null in id"))
    result = run(monkeypatch, processor)
    assert processor.told == ["orders: s2 failed, which could not be recorded: null in id"]
    assert (result.failed, result.errors, result.unrecorded) == ((), (FULL,), ("s2",))
    assert result.waiting == ("s3", "s4")
