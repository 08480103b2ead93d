"""What a table's log tells of the commits that an application numbered."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.sessions import no_session

from lakewright.errors import CommitTooLate
from lakewright.lake.commit import (
    DEPRECATED,
    STRICT,
    find_commit,
    is_superseded,
    read_commits,
    strict_session,
)
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address

# It brings no types.
pa: Any = import_module("pyarrow")

APP = "lakewright/shop/orders:orders"


@pytest.mark.parametrize(("users", "is_set"), [("false", False), ("true", True)])
def test_a_deprecated_setting_is_set_only_if_the_users_differs(users: str, is_set: bool) -> None:
    """Spark warns on the screen of each time that it is set."""
    (deprecated,) = DEPRECATED
    conf = {deprecated: users}
    done: dict[str, str] = {}
    session = SimpleNamespace(conf=SimpleNamespace(get=conf.get, set=done.__setitem__))
    strict_session(cast("Any", SimpleNamespace(new_session=lambda: session)))
    expected = dict(STRICT) if is_set else {key: value for key, value in STRICT.items() if key != deprecated}
    assert done == expected


def commit(table: Path, number: int) -> None:
    write(table, number, {"item": f"s{number}"})


def write(table: Path, number: int, told: dict[str, Any]) -> None:
    content = json.dumps({"app": APP, "number": number, **told})
    properties = CommitProperties({"userMetadata": content}, app_transactions=[Transaction(APP, number)])
    write_deltalake(table, pa.table({"id": [number]}), mode="append", commit_properties=properties)


def forget_before(table: Path, version: int) -> None:
    """Remove old commits from the log, as its retention does."""
    DeltaTable(table).create_checkpoint()
    for file in (table / "_delta_log").glob("0*.json"):
        if int(file.stem) < version:
            file.unlink()


@pytest.mark.parametrize(
    ("number", "kept_from", "passed"),
    [
        (1, 0, True),
        (2, 0, False),
        (4, 0, True),
        (6, 0, False),
        (7, 0, False),
        (1, 1, False),
        (4, 1, True),
        (2, 2, False),
        (4, 2, False),
        (1, 3, False),
    ],
)
def test_a_number_has_passed_only_where_the_log_goes_back_far_enough(
    tmp_path: Path, number: int, kept_from: int, passed: bool
) -> None:
    """Versions 0 to 2 have the numbers 2, 3 and 6."""
    table = tmp_path / "orders"
    lake = Lake(LakeSettings(root_folder=str(tmp_path)), SessionSettings(tmp_path), sessions=no_session)
    address = Address(location=str(table))
    assert not is_superseded(lake, address, APP, number, f"s{number}")
    for each in (2, 3, 6):
        commit(table, each)
    forget_before(table, kept_from)

    assert is_superseded(lake, address, APP, number, f"s{number}") is passed
    assert not is_superseded(lake, address, APP, number, "s6")
    if number in (1, 4):
        with pytest.raises(CommitTooLate):
            find_commit(lake, address, APP, number)


def test_a_commit_of_folded_slices_is_that_of_each_of_them_and_of_no_other(tmp_path: Path) -> None:
    """s1 to s3 were to be folded, and share the number 4; the commit holds s1 and s2 only."""
    table = tmp_path / "orders"
    lake = Lake(LakeSettings(root_folder=str(tmp_path)), SessionSettings(tmp_path), sessions=no_session)
    address = Address(location=str(table))
    slices = [{"item": f"file:///a/s{n}", "metrics": {"inserted": n}} for n in (1, 2)]
    write(table, 4, {"run": "r", "items": slices})

    for item in ("file:///a/s2", "file:///moved/s2"):
        found = find_commit(lake, address, APP, 4, item)
        assert found is not None
        assert found.version == 0
        assert {
            "run": "r",
            "item": "file:///a/s2",
            "metrics": {"inserted": 2},
        }.items() <= found.content.items()
        assert not is_superseded(lake, address, APP, 4, item)
    assert is_superseded(lake, address, APP, 4, "file:///a/s3")
    with pytest.raises(CommitTooLate):
        find_commit(lake, address, APP, 4, "file:///a/s3")
    (whole,) = read_commits(lake, address)
    assert [content["item"] for content in whole.items] == ["file:///a/s1", "file:///a/s2"]


def test_a_number_that_another_slice_has_used_alone_is_passed(tmp_path: Path) -> None:
    """Of slices that were to be folded, one was processed alone; the others need another number."""
    lake = Lake(LakeSettings(root_folder=str(tmp_path)), SessionSettings(tmp_path), sessions=no_session)
    address = Address(location=str(tmp_path / "orders"))
    commit(tmp_path / "orders", 4)

    assert not is_superseded(lake, address, APP, 4, "s4")
    assert is_superseded(lake, address, APP, 4, "s5")
    with pytest.raises(CommitTooLate):
        find_commit(lake, address, APP, 4, "s5")


def test_the_newest_commit_is_found_by_reading_it_alone_and_an_older_one_by_reading_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(LakeSettings(root_folder=str(tmp_path)), SessionSettings(tmp_path), sessions=no_session)
    address = Address(location=str(tmp_path / "orders"))
    for number in (1, 2, 3):
        commit(tmp_path / "orders", number)
    read: list[int | None] = []
    history = DeltaTable.history

    def counted(table: DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        read.append(limit)
        return history(table, limit)

    monkeypatch.setattr(DeltaTable, "history", counted)
    newest, older = (find_commit(lake, address, APP, number, f"s{number}") for number in (3, 2))
    assert newest is not None
    assert older is not None
    assert (newest.version, older.version) == (2, 1)
    assert read == [1, 1, 20]

    read.clear()
    with pytest.raises(CommitTooLate):
        find_commit(lake, address, APP, 0)
    assert read == [1, 20], "the log has fewer commits than that"
