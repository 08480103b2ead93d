"""Which commit tells what a slice changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from tests.unit.slices.test_applied import APP, commit

from lakewright.errors import UsageError
from lakewright.lake.commit import Commit
from lakewright.manifest.verdict import Verdict
from lakewright.usecases.look_back import PastTable


def of(version: int, name: str) -> Commit:
    return commit(version, item=f"file:///bronze/{name}", number=version)


def table(*log: Commit) -> PastTable:
    none: Any = None
    entity: Any = SimpleNamespace(name="orders", identity="orders", called="orders")
    return PastTable(none, entity, none, none, log)


@patch.object(PastTable, "app_id", new_callable=PropertyMock, return_value=APP)
def test_after_a_rebuild_a_slice_is_told_by_its_own_commit(app_id: object) -> None:
    del app_id
    items = [{"item": f"file:///bronze/{name}"} for name in ("1.csv", "2.csv", "late.csv")]
    rebuilt = commit(3, "CREATE OR REPLACE TABLE AS SELECT", number=4, rewind={"base": None}, items=items)
    found = table(of(0, "1.csv"), of(1, "2.csv"), rebuilt, of(4, "3.csv"))
    assert found.commit_of("2.csv")[0].version == 1
    assert [found.rewound_since(version) for version in (1, 4)] == [3, None]
    with pytest.raises(UsageError, match=r"with others, by the undo or rebuild of version 3"):
        found.commit_of("late.csv")
    unknown = (Verdict.UNKNOWN, False)
    known = {"same.csv": (Verdict.PROCESSED, True), "waits.csv": (Verdict.READY, False)}
    with patch.object(PastTable, "_recorded", side_effect=lambda name: known.get(name, unknown)):
        with pytest.raises(UsageError, match=r"no commit of a slice '4\.csv'") as refused:
            found.commit_of("4.csv")
        assert refused.value.remedy == "did you mean '3.csv'?"
        with pytest.raises(UsageError, match=r"no commit of slice 'waits\.csv', which is ready"):
            found.commit_of("waits.csv")
        with pytest.raises(UsageError, match=r"no commit of slice 'same\.csv', although it was processed"):
            found.commit_of("same.csv")


@patch.object(PastTable, "app_id", new_callable=PropertyMock, return_value=APP)
@patch.object(PastTable, "_recorded", return_value=(Verdict.PROCESSED, False))
def test_a_slice_whose_commit_the_log_no_longer_has_is_not_said_to_have_changed_nothing(*_: object) -> None:
    found = table(of(1, "2.csv"))
    with pytest.raises(UsageError, match=r"does not show the commit of 1\.csv") as refused:
        found.commit_of("1.csv")
    assert str(refused.value.remedy).startswith("It is older than what the log keeps")
    assert "`lakewright manifest show orders/1.csv`" in str(refused.value.remedy)
