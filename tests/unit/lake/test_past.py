"""D2: a version that a table does not have is refused with the versions that it has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from lakewright.errors import TargetError
from lakewright.lake import commit as commits
from lakewright.lake.commit import Commit
from lakewright.spec.models.places import Address

ADDRESS = Address(location="/lake/orders")


def commit(version: int, at: datetime | None) -> Commit:
    return Commit(version, at, "MERGE", {}, {})


@pytest.mark.parametrize(
    ("log", "known"),
    [
        ([commit(0, datetime(2024, 5, 1, tzinfo=UTC))], "version 0 (2024-05-01T00:00:00+00:00)"),
        (
            [commit(3, None), commit(4, datetime(2024, 5, 1, 6, 0, 0, 7, UTC)), commit(7, None)],
            "versions 3 to 7",
        ),
    ],
)
def test_an_unknown_version_is_refused_with_those_of_the_log(
    monkeypatch: pytest.MonkeyPatch, log: list[Commit], known: str
) -> None:
    monkeypatch.setattr(commits, "read_commits", lambda *_: tuple(log))
    for version in (-1, 99):
        with pytest.raises(TargetError) as refused:
            commits.check_version(cast("Any", None), ADDRESS, version)
        assert refused.value.message == f"{ADDRESS} has no version {version}: its log has {known}"
    commits.check_version(cast("Any", None), ADDRESS, log[0].version)
