"""What only a Delta table can do wrong: many small files, others' commits, and no server in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, RecordBatch
from deltalake import DeltaTable, write_deltalake
from tests.records import ITEM, REGIONS, draft, found, ledger_of, put_down
from tests.stores.workers import race

from lakewright.errors import ManifestCorrupt, NotInstalled, SpecError, StoreUnavailable
from lakewright.manifest.record import Application
from lakewright.manifest.store import Put, Query, Store, Write
from lakewright.stores.delta import store as module
from lakewright.stores.delta import table as files
from lakewright.stores.delta.backend import DeltaBackend
from lakewright.stores.delta.store import DeltaStore
from lakewright.stores.delta.table import Line, to_arrow
from lakewright.upkeep.fsck import fsck

Settings = dict[str, Any]
RACERS = 4


@pytest.fixture
def store(delta: Settings, opened: Callable[[Settings], Store]) -> DeltaStore:
    found_store = opened(delta)
    assert isinstance(found_store, DeltaStore)
    return found_store


def note(store: Store, key: str, value: dict[str, Any] | None) -> None:
    store.write(Write(puts=(Put("note", key, value),)))


def test_many_writers_lose_nothing_and_each_item_has_one_winner(delta: Settings, store: DeltaStore) -> None:
    ledger = ledger_of(store)
    names = [f"{number:02}" for number in range(12)]
    ledger.discover(found(name) for name in names)
    with get_context("spawn").Pool(RACERS) as pool:
        winners = pool.map(partial(race, delta, names), range(RACERS), chunksize=1)
    assert sorted(name for won in winners for name in won) == names
    assert list(fsck(store)) == []
    assert len(list(store.history())) == 2 * len(names)


@pytest.mark.parametrize("below", ["", "/deeper/manifest"])
def test_a_file_in_its_place_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    backend = DeltaBackend({"location": f"{tmp_path}/file{below}"})
    for ask in (backend.open_existing, backend.open):
        with pytest.raises(SpecError, match=f"{tmp_path}/file is a file"):
            ask()


def test_an_error_of_the_store_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"Generic \w+ error: [^\n\x1b↳]*Not a directory"):
        files.table_exists(str(tmp_path / "file"), {})


class TestCompacting:
    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MOST_FILES", 5)

    def test_keeps_files_few_and_answers_the_same(self, store: DeltaStore, delta: Settings) -> None:
        for number in range(30):
            put_down(store, draft(f"r-{number}", "NEW", item=f"i-{number % 3}"))
            note(store, f"k-{number % 4}", {"n": number} if number % 5 else None)
        before = list(store.history()), list(store.select(Query())), list(store.documents("note"))
        assert len(DeltaTable(delta["location"]).file_uris()) <= 5 + files.COUNT_FILES_EVERY
        other = DeltaStore(delta["location"])
        assert (list(other.history()), list(other.select(Query())), list(other.documents("note"))) == before
        assert len(before[0]) == 30
        assert list(fsck(other)) == []

    def test_leaves_files_for_those_who_read_them_still(self, store: DeltaStore, delta: Settings) -> None:
        for number in range(7):
            put_down(store, draft(f"r-{number}", "NEW", item=f"i-{number}"))
        records = store.history()
        next(records)
        other = DeltaStore(delta["location"])
        for number in range(7, 30):
            put_down(other, draft(f"r-{number}", "NEW", item=f"i-{number}"))
        assert len(list(records)) == 6

    def test_that_others_get_in_the_way_of_is_left_for_another_time(
        self, store: DeltaStore, delta: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = DeltaStore(delta["location"])
        newest = files._newest

        def be_overtaken(where: str, *more: Any) -> str:
            if where == "true":
                note(other, "between", {})
            return newest(where, *more)

        monkeypatch.setattr(files, "_newest", be_overtaken)
        for number in range(16):
            note(store, f"k-{number}", {})
        monkeypatch.undo()
        assert len(list(store.documents("note"))) == 17


class TestOpening:
    def test_without_a_location_says_so(self) -> None:
        with pytest.raises(SpecError, match="has no location"):
            DeltaBackend({}).open()

    def test_of_another_table_says_so(self, tmp_path: Path) -> None:
        other = RecordBatch.from_arrays([Array([1], DataType.int64())], names=["x"])
        write_deltalake(tmp_path / "other", other)
        with pytest.raises(SpecError, match="is a Delta table, but not a manifest"):
            DeltaStore(str(tmp_path / "other"))

    def test_where_nothing_can_be_made_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(StoreUnavailable, match="can't be used"):
            DeltaStore(str(tmp_path / "file" / "manifest"))

    def test_of_an_older_manifest_brings_it_up_to_date_and_of_a_newer_is_refused(
        self, store: DeltaStore, delta: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_down(store, draft("new", "NEW"))
        with monkeypatch.context() as patch:
            patch.setattr(module, "VERSION", module.VERSION + 1)
            newer = DeltaStore(delta["location"])
            assert [record.record_id for record in newer.records(ITEM)] == ["new"]
            assert list(fsck(newer)) == []
        with pytest.raises(NotInstalled, match="schema version 4, this Lakewright knows versions up to 3"):
            DeltaStore(delta["location"])


def test_rows_edited_by_hand_are_told(store: DeltaStore, delta: Settings) -> None:
    put_down(store, draft("new", "NEW"))
    at = store._table.refresh()
    broken = [
        Line("record", "", ITEM, 2, at, None, "{}"),
        Line("item", "", "odd", 1, at, "[]", "["),
    ]
    write_deltalake(delta["location"], to_arrow(broken), mode="append")
    with pytest.raises(ManifestCorrupt, match="record 2 can't be read"):
        store.records(ITEM)
    with pytest.raises(ManifestCorrupt, match="odd can't be read"):
        store.read(["odd"])
    store.rebuild()
    assert store.read(["odd"]) == {}
    assert store.read([ITEM])[ITEM].problem is not None


def test_names_that_look_like_sql_are_names(store: DeltaStore) -> None:
    names = ["a'); DROP TABLE manifest; --", "'", "''", "\\'", "$1", "%"]
    who = Application.named('it\'s ["processed"]')
    for number, name in enumerate(names):
        put_down(store, draft(f"r'{number}", "NEW", item=name, application=who))
        note(store, name, {})
    assert [item.item_id for item in store.select(Query(who))] == sorted(names)
    assert [document.key for document in store.documents("note", prefix="'")] == ["'", "''"]
    assert REGIONS not in {application for application, _ in store.counts()}
