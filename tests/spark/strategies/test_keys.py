"""Rows of a slice are one record exactly where their keys' hashes are equal, by whatever they are counted.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity

from lakewright.errors import DuplicateBusinesskeyException

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

ID, N = {"name": "id", "fieldroles": ["businesskey"]}, {"name": "n", "fieldroles": ["businesskey"]}
TEXTS = ["", " ", "a", "a ", "A", "\u00e1", "a\u0301", "ß", "ss", "\u0000", "ﬁ", "fi"]
COLLATED = {
    "columns": [{**ID, "datatype": "string"}],
    "transformations": [{"column": "id", "expression": "collate(id, 'UTF8_LCASE')"}],
}

APART: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "texts that look or sort alike": ({}, [{"id": text} for text in TEXTS]),
    "texts that a collation holds for equal": (
        COLLATED,
        [{"id": text} for text in ("a", "A", "B", "b", "c")],
    ),
    "nulls in different columns": (
        {"columns": [ID, N], "settings": {"null_keys": "allow"}},
        [{"id": i, "n": n} for i, n in [("1", None), (None, "1"), (None, None), ("1", "1"), ("11", "")]],
    ),
    "values that are equal in the type they are cast to": (
        {"columns": [{**ID, "datatype": "integer"}]},
        [{"id": "1"}, {"id": "01"}],
    ),
    "a primary key of the slice's own, beside a key that isn't asked for": (
        {},
        [{"id": 1, "PK_things": "x"}, {"id": 1, "PK_things": "X"}],
    ),
    "fractions": ({}, [{"id": number} for number in (0.0, 0.5, float("nan"), float("inf"))]),
}

SAME: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "zeros with either sign": ({}, [{"id": 0.0}, {"id": -0.0}]),
    "what is no number": ({}, [{"id": float("nan")}, {"id": float("nan")}]),
    "nulls that are allowed": (
        {"columns": [ID, N], "settings": {"null_keys": "allow"}},
        [{"id": "1", "n": None}, {"id": "1", "n": None}, {"id": None, "n": "1"}],
    ),
    "a primary key of the slice's own": ({}, [{"id": n, "PK_things": "x"} for n in (1, 2)]),
    "texts": ({}, [{"id": "a"}, {"id": "a"}]),
    "texts with a collation": (COLLATED, [{"id": "a"}, {"id": "A"}, {"id": "a"}]),
}


@pytest.mark.nightly
@pytest.mark.parametrize("more", [{}, {"v": "b"}])
def test_keys_with_different_hashes_are_different_records(lake: SmallLake, more: dict[str, str]) -> None:
    """ "Common Processing Pipeline", Generate primary key."""
    for number, (what, (declared, rows)) in enumerate(APART.items()):
        things = _things(f"apart{number}", declared)
        assert lake.load(things, "s1", rows).inserted == len(rows), what
        assert len(set(lake.rows(things, "PK_things"))) == len(rows), what
        slices = [[{**row, **more} for row in rows]] * (2 if more else 1)
        done = [lake.load(things, f"s{2 + n}", each) for n, each in enumerate(slices)]
        assert (done[0].inserted, done[-1].changed) == (0, 0), what


def test_keys_with_equal_hashes_are_refused(lake: SmallLake) -> None:
    """ "Error Handling", duplicate business keys."""
    for number, (what, (declared, rows)) in enumerate(SAME.items()):
        things = _things(f"same{number}", declared)
        error = lake.fail(things, "s1", rows)
        assert isinstance(error, DuplicateBusinesskeyException), what
        assert error.details["duplicates"] == 1, what
        assert not lake.files(things)


def _things(name: str, declared: dict[str, Any]) -> Entity:
    """Entities of their own tables, of which each calls its key `PK_things`."""
    settings = {"bronze_path": name, "silver_path": name, **declared.get("settings", {})}
    return entity(name=name, destination="things", **{**declared, "settings": settings})
