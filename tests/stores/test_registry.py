"""Choosing a back end by `manifest: {kind: …}` of a project."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewright.errors import NotInstalled, SpecError
from lakewright.manifest.store import Put, Query, Store, Write
from lakewright.stores.deferred_store import DeferredStore
from lakewright.stores.memory import MemoryStore
from lakewright.stores.registry import (
    KINDS,
    kind_class,
    open_lazily,
    open_store,
    read_store,
    resolve_settings,
)


def test_sqlite_is_the_default_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store({}).close()
    assert (tmp_path / ".lakewright" / "manifest.db").is_file()


def test_settings_of_locks_are_not_the_back_ends() -> None:
    assert isinstance(open_store({"kind": "memory", "lease": "60s", "takeover": "auto"}), MemoryStore)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kind_requires_is_among_its_settings(kind: str) -> None:
    assert kind_class(kind).required.keys() <= kind_class(kind).options


def test_relative_places_begin_at_the_project(tmp_path: Path) -> None:
    assert resolve_settings({}, tmp_path) == {
        "kind": "sqlite",
        "path": str(tmp_path / ".lakewright/manifest.db"),
    }
    assert resolve_settings({"kind": "sqlite", "path": "/x.db"}, tmp_path)["path"] == "/x.db"
    assert resolve_settings({"kind": "delta", "location": "m"}, tmp_path)["location"] == str(tmp_path / "m")
    remote = {"kind": "delta", "location": "s3://lake/m"}
    assert resolve_settings(remote, tmp_path) == remote


@pytest.mark.parametrize(
    ("settings", "message", "remedy"),
    [
        ({"kind": "sqlit"}, "unknown kind 'sqlit' of manifest", "did you mean 'sqlite'?"),
        ({"kind": "oracle"}, "known: delta, dynamodb, memory, postgres, sqlite", None),
        (
            {"kind": "sqlite", "pth": "x"},
            "a manifest of kind sqlite has no setting 'pth'",
            "did you mean 'path'?",
        ),
        ({"kind": "memory", "path": "x"}, "a manifest of kind memory has no setting 'path'", None),
        ({"kind": "postgres", "url": "mysql://x/y"}, "url is one of mysql", "Write `postgresql://"),
        ({"kind": "postgres", "url": "no url"}, "url can't be read", "Write `postgresql://"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], message: str, remedy: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        open_store(settings)
    assert message in caught.value.message
    assert remedy is None or remedy in str(caught.value.remedy)


def test_every_wrong_setting_is_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        open_store({"kind": "sqlite", "url": "x", "table": "y"})
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("kind", "package"), [("sqlite", "sqlalchemy"), ("postgres", "psycopg"), ("dynamodb", "boto3")]
)
def test_a_missing_driver_is_named_with_what_to_install(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in list(sys.modules):
        if module.startswith((package, KINDS[kind].rpartition(".")[0])):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled, match=package) as caught:
        open_store({"kind": kind})
    assert caught.value.remedy == f"Run `pip install 'lakewright[{kind}]'`."


def test_no_database_driver_is_imported_before_a_store_is_opened() -> None:
    code = (
        "import sys, lakewright.testing, lakewright.manifest.journal, lakewright.upkeep.transfer, "
        "lakewright.stores.registry, lakewright.stores.heartbeat, lakewright.stores.process; "
        "print(sorted({'boto3', 'deltalake', 'psycopg', 'pyspark', 'sqlalchemy', 'sqlite3'} "
        "& sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "delta", "dynamodb"])
def test_reading_finds_nothing_and_makes_nothing_where_there_is_no_manifest(
    kind: str, request: pytest.FixtureRequest
) -> None:
    settings = request.getfixturevalue(kind)
    for _ in range(2):
        assert read_store(settings, lambda store: (type(store).__name__, store.counts())) == (
            "MemoryStore",
            {},
        )
    with closing(open_store(settings)) as store:
        store.write(Write(puts=(Put("note", "x", {"n": 1}),)))
    found = read_store(settings, lambda store: store.document("note", "x"))
    assert found is not None
    assert found.value == {"n": 1}


@pytest.fixture(params=["sqlite", "postgres", "delta", "dynamodb"])
def kept(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of a manifest that isn't there yet, of each kind that outlives its process."""
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


EVERY_LOOK: list[Callable[[Store], Any]] = [
    lambda store: store.read(["file:///a"]),
    lambda store: store.look_up(["file:///a"], [("note", "x")]).items,
    lambda store: store.records("file:///a"),
    lambda store: list(store.select(Query())),
    lambda store: store.counts(),
    lambda store: store.document("note", "x"),
    lambda store: list(store.documents("note")),
    lambda store: list(store.history()),
    lambda store: store.rebuild(),
]


def test_whoever_looks_makes_no_manifest_and_the_first_write_does(kept: dict[str, Any]) -> None:
    with closing(open_lazily(kept)) as store:
        assert not any(look(store) for look in EVERY_LOOK)
        assert abs((store.now() - datetime.now(UTC)).total_seconds()) < 60
        assert isinstance(open_lazily(kept), DeferredStore)

        store.write(Write(puts=(Put("note", "x", {"n": 1}),)))

        assert store.document("note", "x") is not None
        with closing(open_lazily(kept)) as other:
            assert not isinstance(other, DeferredStore)
            assert other.document("note", "x") is not None


def test_what_others_make_is_seen_by_who_found_nothing(kept: dict[str, Any]) -> None:
    with closing(open_lazily(kept)) as looking, closing(open_lazily(kept)) as writing:
        assert looking.document("note", "x") is None
        assert list(writing.write_many([Write(puts=(Put("note", "x", {"n": 1}),))]))
        assert looking.document("note", "x") is not None
