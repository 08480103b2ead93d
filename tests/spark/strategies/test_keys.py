"""Rows of a slice are one record exactly where their keys' hashes are equal, by whatever they are counted.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity

from lakewright.errors import DuplicateBusinesskeyException
from lakewright.schema.canonical import CanonicalForm
from lakewright.strategies import schema_fit

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
    "values that are equal in the type they are cast to": (
        {"columns": [{**ID, "datatype": "integer"}]},
        [{"id": "1"}, {"id": "01"}],
    ),
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


@pytest.mark.parametrize("strategy", ["merge", pytest.param("historic", marks=pytest.mark.nightly)])
def test_a_record_keeps_its_key_however_the_source_writes_it(lake: SmallLake, strategy: str) -> None:
    """ "Common Processing Pipeline", Generate primary key: of the values as the table has them."""
    things = entity(strategy, columns=[{**ID, "datatype": "integer"}])
    lake.load(things, "s1", [{"id": "104", "v": "a"}, {"id": "7", "v": "b"}])

    done = lake.load(things, "s2", [{"id": "0104", "v": "c"}, {"id": "7", "v": "b"}])

    assert (done.inserted, done.changed) == (0, 1)
    assert (104, "c") in lake.rows(things, "id", "v")
    # The source has numbers now.
    assert lake.load(things, "s3", [{"id": 104, "v": "c"}, {"id": 8, "v": "d"}]).inserted == 1


@pytest.mark.parametrize("strategy", ["merge", pytest.param("historic", marks=pytest.mark.nightly)])
def test_a_table_with_keys_of_the_sources_values_keeps_them(
    lake: SmallLake, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions made such tables; other keys would be other records."""
    things = entity(strategy, columns=[{**ID, "datatype": "integer"}])
    with monkeypatch.context() as patched:
        patched.setattr(schema_fit, "is_key_cast", lambda _: False)
        patched.setattr(schema_fit, "canonical_form", lambda _, zone: CanonicalForm("2", zone))
        lake.load(things, "s1", [{"id": "0104", "v": "a"}, {"id": "7", "v": "b"}])

    lake.put(things, "s2", [{"id": "0104", "v": "c"}, {"id": "104", "v": "d"}])
    result = lake.process(things)

    (done,) = (each.summary for each in result.slices)
    assert (done.inserted, done.changed) == (1, 1)
    (told,) = (each for each in result.notes if each.startswith("primary keys are of "))
    assert told.startswith("primary keys are of 'id' before it is converted to int: ")
    assert told.endswith("; `lakewright rebuild things` builds it again")


def _things(name: str, declared: dict[str, Any]) -> Entity:
    """Entities of their own tables, of which each calls its key `PK_things`."""
    settings = {"bronze_path": name, "silver_path": name, **declared.get("settings", {})}
    return entity(name=name, destination="things", **{**declared, "settings": settings})
