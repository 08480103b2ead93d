"""A slice in a store, of which listings show a part, waits or is compared again, and never fails; no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.sessions import no_session

from lakewright.errors import LakewrightError, SliceError, SliceUnsettled
from lakewright.lake.files import FolderEntry
from lakewright.lake.lake import Lake
from lakewright.lake.paths import FileEntry
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice, Ledger
from lakewright.manifest.record import Agent, Application, Author, State
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.discovery import SECOND_LOOKS, Slice, find_unchanged_slice
from lakewright.slices.result import ProcessResult
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.stores.heartbeat import Heartbeat
from lakewright.stores.memory import MemoryStore

NOW = datetime(2022, 1, 1, tzinfo=UTC)
BRONZE = "s3://b/bronze/orders"
US = Application.named("lakewright/shop/orders", "orders")


def slice_of(files: int) -> Slice:
    parts = tuple(FileEntry(f"part-{n}.csv", 10, 1_700_000_000_000) for n in range(files))
    return Slice("d1", f"{BRONZE}/d1", parts, is_folder=True)


HALF, WHOLE = slice_of(1), slice_of(2)


@dataclass
class FakeStore:
    """Shows one listing after another, and then the last one."""

    listings: list[Slice | None]
    slept: list[float] = field(default_factory=list)

    def entry(self, path: str) -> FolderEntry:
        found = self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]
        if found is None:
            raise FileNotFoundError(path)
        return FolderEntry(found.name, found.files, found.marks, found.is_folder)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    fake = FakeStore([WHOLE])
    monkeypatch.setattr("lakewright.lake.files.ObjectFiles.entry", fake.entry)
    return fake


@pytest.fixture
def ledger() -> Ledger:
    ids: Iterator[str] = map(str, count(1))
    ledger = Ledger(MemoryStore(lambda: NOW), Author(Agent("test")), ids=lambda: next(ids))
    discover(ledger, WHOLE)
    return ledger


def discover(ledger: Ledger, found: Slice) -> None:
    ledger.discover([DiscoveredSlice(found.path, US, "orders", found.name, found.fingerprint)])


def claimed(ledger: Ledger) -> Claim:
    holder = Holder("here", 1, "then", "r1")
    return ledger.acquire(WHOLE.path, US, holder, duration=timedelta(minutes=1), token_counter="t")


class Reader(SliceProcessor):
    """Looks at the slice, and processes nothing."""

    def __init__(self, folder: Path, ledger: Ledger, store: FakeStore) -> None:
        lake = Lake(LakeSettings(), SessionSettings(folder), sessions=no_session)
        self.context = cast(
            "Any",
            SimpleNamespace(
                lake=lake,
                ledger=ledger,
                sleep=store.slept.append,
                is_cut_off=lambda: False,
                report=lambda _: None,
            ),
        )
        self.entity = cast("Any", SimpleNamespace(name="orders", identity="orders", called="orders"))
        self.places = cast("Any", SimpleNamespace(bronze=BRONZE, slices=SliceFolder(BRONZE)))

    def translated(self, error: Exception, name: str) -> LakewrightError:
        del name
        return cast("LakewrightError", error)

    def _commit(self, claims: Sequence[Claim], heartbeat: Heartbeat) -> ProcessResult:
        del heartbeat
        (claim,) = claims
        found = self.unchanged_slice(claim)
        self.context.ledger.processed(claim, {"fingerprint": found.fingerprint})
        return ProcessResult()


BEATING = cast("Any", SimpleNamespace(keep=lambda _: None, drop=lambda _: None, check=lambda _: None))


def item_of(ledger: Ledger) -> Item:
    return ledger.item(WHOLE.path)


@pytest.mark.parametrize("first", [HALF, None])
def test_a_listing_that_shows_a_part_at_first_is_made_again(
    tmp_path: Path, ledger: Ledger, store: FakeStore, first: Slice | None
) -> None:
    store.listings = [first, first, WHOLE]
    Reader(tmp_path, ledger, store).process([claimed(ledger)], BEATING)
    assert store.slept == list(SECOND_LOOKS[:2])
    assert item_of(ledger).state is State.PROCESSED


def test_a_slice_that_stays_different_is_released_and_the_next_run_takes_it(
    tmp_path: Path, ledger: Ledger, store: FakeStore
) -> None:
    more = slice_of(3)
    store.listings = [more]
    reader = Reader(tmp_path, ledger, store)
    (error,) = reader.process([claimed(ledger)], BEATING).errors
    assert isinstance(error, SliceUnsettled)
    assert error.message == (
        "the store lists 3 files of 30 bytes for the slice d1; when it was discovered, it listed 2 files of "
        "20 bytes"
    )
    assert "Run again" in (error.remedy or "")
    assert store.slept == list(SECOND_LOOKS)
    assert item_of(ledger).failed is None
    assert item_of(ledger).blocked is None
    reader.process([claimed(ledger)], BEATING)
    assert item_of(ledger).state is State.PROCESSED
    assert store.slept == list(SECOND_LOOKS), "the next run finds what is recorded, and does not wait"


def test_a_slice_that_stays_away_is_gone(tmp_path: Path, ledger: Ledger, store: FakeStore) -> None:
    store.listings = [None]
    lake = Lake(LakeSettings(), SessionSettings(tmp_path), sessions=no_session)
    with pytest.raises(SliceError, match="is gone from s3://b/bronze/orders"):
        find_unchanged_slice(lake, SliceFolder(BRONZE), item_of(ledger), sleep=store.slept.append)
    assert store.slept == list(SECOND_LOOKS)


def test_a_slice_on_a_disk_is_looked_at_once(tmp_path: Path, ledger: Ledger, store: FakeStore) -> None:
    (tmp_path / "d1").mkdir()
    (tmp_path / "d1" / "part-0.csv").write_text("id\n")
    lake = Lake(LakeSettings(), SessionSettings(tmp_path), sessions=no_session)
    with pytest.raises(SliceError, match="has changed since it was discovered"):
        find_unchanged_slice(lake, SliceFolder(str(tmp_path)), item_of(ledger), sleep=store.slept.append)
    assert store.slept == []
