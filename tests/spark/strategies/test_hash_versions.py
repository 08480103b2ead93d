"""A table keeps the version of its hashes until it is built again.

`processing-strategies.md`, "Common Processing Pipeline": compute source hash, generate primary key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.rewinding import rebuild_in

from lakewright.lake.commit import read_commits
from lakewright.lake.observation import observe_table
from lakewright.schema.canonical import HASH_VERSION, CanonicalForm
from lakewright.strategies import schema_fit
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY, KEY_PROPERTY

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

HASHES = ("PK_things", "dlf_SourceHash")


def versions(lake: SmallLake, things: Entity) -> tuple[Any, ...]:
    """The versions of a table's hashes by its properties and its last commit, and the class of its key."""
    silver = things.places(lake.lake.settings).silver
    properties = observe_table(lake.lake, silver).properties
    last = read_commits(lake.lake, silver)[-1].content.get("hashVersion")
    return properties[HASH_VERSION_PROPERTY], last, json.loads(properties[KEY_PROPERTY])["id"]


@pytest.mark.parametrize("strategy", ["historic", pytest.param("merge", marks=pytest.mark.nightly)])
def test_a_table_keeps_its_hashes_until_it_is_built_again(
    lake: SmallLake, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that do not change get no new version because the product has a new one."""
    things = entity(strategy)
    rows = [{"id": 1.0, "price": 1.5, "tags": []}, {"id": 2.0, "price": 2.0, "tags": ["a"]}]
    with monkeypatch.context() as patched:
        patched.setattr(schema_fit, "canonical_form", lambda _, zone: CanonicalForm("2", zone))
        lake.load(things, "s1", rows)
    before = {*lake.rows(things, "id", *HASHES)}
    assert versions(lake, things) == ("2", "2", "double")

    lake.put(things, "s2", [rows[0], {**rows[1], "price": 2.5}])
    done = lake.process(things)

    (summary,) = (each.summary for each in done.slices)
    assert (summary.inserted, summary.changed) == (0, 1)
    assert versions(lake, things) == ("2", "2", "double")
    kept = {*lake.rows(things, "id", *HASHES)}
    assert {row for row in before if row[0] == 1.0} <= kept
    assert {row[1] for row in kept} == {row[1] for row in before}
    (note,) = done.notes
    assert note.startswith("source hashes are of version 2: ")
    assert note.endswith("; `lakewright rebuild things` builds it again")

    rebuild_in(lake, things)

    assert versions(lake, things) == (HASH_VERSION, HASH_VERSION, "number")
    built = {*lake.rows(things, "id", *HASHES)}
    assert {row[0] for row in built} == {1.0, 2.0}
    assert not {row[1] for row in built} & {row[1] for row in before}
    lake.put(things, "s3", [{**rows[0], "tags": None}, {**rows[1], "price": 2.5}])
    again = lake.process(things)
    assert [each.summary.changed for each in again.slices] == [0]
    assert again.notes == ()
