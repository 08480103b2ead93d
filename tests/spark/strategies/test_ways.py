"""However a slice is compared and written, the table and the numbers are the same.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import WAYS, SmallLake, counts_of, entity, hours, in_way

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

Rows = list[dict[str, Any]]

SLICES: list[Rows] = [
    [{"id": n, "v": "a", "p": n % 2, "dlf_deleted": False} for n in range(12)],
    # Changed, the same, in another partition, deleted, new; four are missing.
    [
        {"id": n, "v": "b" if n < 3 else "a", "p": 1 if n == 4 else n % 2, "dlf_deleted": n == 7}
        for n in range(8)
    ]
    + [{"id": 20, "v": "a", "p": None, "dlf_deleted": False}],
    # Two come back, one of them changed.
    [{"id": n, "v": "c" if n == 9 else "a", "p": n % 2, "dlf_deleted": False} for n in (3, 7, 9, 20)],
]


ANEW, MARKED, MERGED, SORTED = WAYS


@pytest.mark.nightly  # the models of test_model compare each way with plain Python
@pytest.mark.parametrize(
    ("strategy", "ways", "slices"),
    [("merge", [ANEW, MARKED, MERGED, SORTED], SLICES), ("historic", [ANEW, MARKED, MERGED, SORTED], SLICES)],
)
def test_every_way_comes_to_the_same(
    lake: SmallLake, strategy: str, ways: Sequence[str], slices: Sequence[Rows]
) -> None:
    """ "Merge Strategy", "Historic Strategy", "Delete Inference"."""
    first, *others = (
        _outcome(lake, _things(f"{strategy}{n}", strategy), way, slices) for n, way in enumerate(ways)
    )
    for other in others:
        assert other == first


def _outcome(lake: SmallLake, things: Entity, way: str, slices: Sequence[Rows]) -> Any:
    counts = []
    with in_way(way):
        for hour, rows in enumerate(slices):
            at = hours(hour + 1).isoformat()
            counts.append(counts_of(lake.load(things, f"s{hour}", rows, processing_time=at)))
    columns = [name for name in lake.table(things).columns if name != "dlf_source_filename"]
    return counts, lake.version(things), lake.rows(things, *columns)


def _things(name: str, strategy: str) -> Entity:
    columns = [
        {"name": "id", "fieldroles": ["businesskey"]},
        {"name": "p", "fieldroles": ["partition"]},
    ]
    settings = {"delete_missing": True, "delete_scope": "full"}
    return entity(
        strategy, name=name, destination="things", columns=columns, settings={**settings, "silver_path": name}
    )
