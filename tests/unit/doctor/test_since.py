"""Since which version something is broken."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakewright.doctor import first_broken


@pytest.mark.parametrize("first", range(8))
def test_the_first_broken_version_is_found_by_halving(first: int) -> None:
    seen: list[int] = []

    def count_at(version: int) -> Mapping[str, int]:
        seen.append(version)
        return {"gap": int(version >= first), "overlap": 1}

    assert first_broken(["gap", "overlap"], range(8), count_at) == {"gap": first, "overlap": 0}
    assert len(seen) == len(set(seen)) <= 7


def test_versions_that_can_not_be_read_tell_nothing() -> None:
    def count_at(version: int) -> Mapping[str, int] | None:
        return {"gap": 1} if version > 3 else None

    assert first_broken(["gap"], range(6), count_at) == {"gap": None}
