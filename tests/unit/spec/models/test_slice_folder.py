"""Patterns of slices: which files and folders of a place are slices, and of what name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lakewright.lake.lake import Lake
from lakewright.slices.discovery import find_slice, item_id, list_slices
from lakewright.spec.models.slice_folder import SliceFolder

NO_LAKE: Lake = None  # type: ignore[assignment]  # local folders are listed without a lake

TREE = (
    "hourly/01-05-2024/06/x.csv",
    "hourly/01-05-2024/07/x.csv",
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
    "orders.parquet/part-0.parquet",
    "orders.parquet/part-1.parquet",
    "2024-05-01/x/a.csv",
    "2024-05-01/y/a.csv",
    "eu/a_2024-05-01.csv",
    "us/a_2024-05-01.csv",
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
    "customers/2024-05-01.csv": {"2024-05-01.csv": [""]},
    "customers/2024-05-01.csv.gz": {},
    "orders.parquet": {"orders.parquet": ["part-0.parquet", "part-1.parquet"]},
    "customers/2024-05-0?.csv": {"2024-05-01.csv": [""], "2024-05-02.csv": [""]},
    "orders/2*-01": {"2024-05-01": ["notes.txt", "part-0.parquet", "part-1.parquet"]},
    "customers/{date}.csv": {"2024-05-01.csv": [""], "2024-05-02.csv": [""]},
    "orders/{date}/*.parquet": {"2024-05-01": ["part-0.parquet", "part-1.parquet"]},
    "exports/{date}/orders.csv": {"20240501T0600": [""], "20240502T0600": [""]},
    "byday/{yyyy}/{MM}/{dd}/orders-*.json": {"2024-05-01": ["orders-1.json", "orders-2.json"]},
    "hive/dt={date}/**": {"dt=2024-05-01": ["region=eu/x.parquet"]},
    "*/2024-05-01/part-?.parquet": {"orders": ["2024-05-01/part-0.parquet", "2024-05-01/part-1.parquet"]},
    "{date}/*/a.csv": {"2024-05-01": ["x/a.csv", "y/a.csv"]},
    "*/a_{date}.csv": {"2024-05-01": ["eu/a_2024-05-01.csv", "us/a_2024-05-01.csv"]},
    "hourly/{dd}-{MM}-{yyyy}/{HH}/x.csv": {"2024-05-01T06": [""], "2024-05-01T07": [""]},
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exports/{date}/customers.csv", "exports/{date}/orders.csv"),
        ("customers/*-01.csv", "customers/*-02.csv"),
    ],
)
def test_entities_that_share_folders_have_items_of_their_own(place: Path, one: str, other: str) -> None:
    folders = [SliceFolder.of(f"{place}/{pattern}") for pattern in (one, other)]
    ids = [[slice_.item_id for slice_ in list_slices(folder, NO_LAKE)] for folder in folders]
    assert all(ids)
    for folder, own, others in zip(folders, ids, reversed(ids), strict=True):
        assert all(each.startswith(f"{item_id(str(folder))}/") for each in own)
        assert not any(each.startswith(f"{item_id(str(folder))}/") for each in others)


@pytest.mark.parametrize("pattern", ["in/{day}/x.csv", "in/{date}/{date}.csv"])
def test_a_wrong_pattern_says_what_is_wrong(pattern: str) -> None:
    assert SliceFolder.of(pattern).problem is not None
    assert SliceFolder.of("in/{date}/x.csv").problem is None


def test_a_folder_whose_name_looks_like_a_pattern_is_plain() -> None:
    assert str(SliceFolder("/lake/{date}/*")) == "/lake/{date}/*"
