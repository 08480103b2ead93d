"""Patterns of slices: which files and folders of a place are slices, and of what name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lakewright.lake.lake import Lake
from lakewright.slices.discover import find_slice, list_slices
from lakewright.spec.models.slice_folder import SliceFolder

NO_LAKE: Lake = None  # type: ignore[assignment]  # local folders are listed without a lake

TREE = (
    "customers/2024-05-01.csv",
    "customers/2024-05-02.csv",
    "customers/readme.md",
    "orders/2024-05-01/part-0.parquet",
    "orders/2024-05-01/part-1.parquet",
    "orders/2024-05-01/notes.txt",
    "orders/latest/part-0.parquet",
    "exports/20240501T0600/customers.csv",
    "exports/20240501T0600/orders.csv",
    "exports/20240502T0600/orders.csv",
    "byday/2024/05/01/orders-1.json",
    "byday/2024/05/01/orders-2.json",
    "byday/2024/05/01/people.json",
    "hive/dt=2024-05-01/region=eu/x.parquet",
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


CASES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "customers": {"2024-05-01.csv": [""], "2024-05-02.csv": [""], "readme.md": [""]},
    "customers/*.csv": {"2024-05-01.csv": [""], "2024-05-02.csv": [""]},
    "customers/{date}.csv": {"2024-05-01.csv": [""], "2024-05-02.csv": [""]},
    "orders/{date}/*.parquet": {"2024-05-01": ["part-0.parquet", "part-1.parquet"]},
    "exports/{date}/orders.csv": {"20240501T0600": [""], "20240502T0600": [""]},
    "byday/{yyyy}/{MM}/{dd}/orders-*.json": {"2024-05-01": ["orders-1.json", "orders-2.json"]},
    "hive/dt={date}/**": {"dt=2024-05-01": ["region=eu/x.parquet"]},
    "*/2024-05-01/part-?.parquet": {"orders": ["2024-05-01/part-0.parquet", "2024-05-01/part-1.parquet"]},
    "nothing/*.csv": {},
}


@pytest.mark.parametrize("pattern", CASES)
def test_a_pattern_chooses_slices_by_their_names(place: Path, pattern: str) -> None:
    folder = SliceFolder.of(f"{place}/{pattern}")
    found = list_slices(folder, NO_LAKE)
    assert {s.name: [f.name if s.is_folder else "" for f in s.files] for s in found} == CASES[pattern]
    for each in found:
        assert all(Path(path).is_file() for path in each.paths)
        assert find_slice(folder, each.name, NO_LAKE) == each


def test_entities_that_share_folders_have_items_of_their_own(place: Path) -> None:
    both = [
        list_slices(SliceFolder.of(f"{place}/exports/{{date}}/{name}.csv"), NO_LAKE)
        for name in ("customers", "orders")
    ]
    ids = [slice_.item_id for slices in both for slice_ in slices]
    assert len(set(ids)) == len(ids) == 3


@pytest.mark.parametrize("pattern", ["in/{day}/x.csv", "in/{date}/{date}.csv"])
def test_a_wrong_pattern_says_what_is_wrong(pattern: str) -> None:
    assert SliceFolder.of(pattern).problem is not None
    assert SliceFolder.of("in/{date}/x.csv").problem is None


def test_a_folder_whose_name_looks_like_a_pattern_is_plain() -> None:
    assert str(SliceFolder("/lake/{date}/*")) == "/lake/{date}/*"
