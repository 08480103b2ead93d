"""Slices of which can be seen, by footers and columns, that they can't be processed.

`processing-strategies.md`, "Error Handling"; `lifecycles-and-phases.md`, "Execution Phases" (VALIDATE).
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pq, table_of

from lakewright.errors import LakewrightError, SchemaDriftError, SliceError, SpecError, TargetError
from lakewright.manifest.verdict import Verdict
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.validation import fail_invalid_slices
from lakewright.spec.models.entity import Entity
from lakewright.strategies.schema_fit import fit_slice

KEY = {"name": "id", "fieldroles": ["businesskey"]}
SOUND = [{"id": 1, "v": "a"}]
SOUND_WITH_NUMBER = [{"id": 1, "v": "a", "n": 1}]


def look_ahead(lake: SmallLake, things: Entity) -> tuple[LakewrightError, ...]:
    bench = lake.bench(things)
    pending = find_pending(bench, things)
    return fail_invalid_slices(bench, things, pending)


def verdicts(lake: SmallLake, things: Entity) -> dict[str, Verdict]:
    application = lake.bench(things).application
    bronze = things.places(lake.lake.settings).bronze
    return {
        item.item_id.rpartition("/")[2]: item.verdict(application)
        for item in lake.items()
        if item.item_id.startswith(f"file://{bronze}/")
    }


MISFITS: list[tuple[str, dict[str, Any], Any, type[LakewrightError], str]] = [
    ("a missing key", {}, [{"v": "a"}], SchemaDriftError, "'id'"),
    ("a key that no value can be", {}, [{"id": [1], "v": "a"}], SchemaDriftError, "'id'"),
    (
        "a new column where none may come",
        {"settings": {"schema_drift": "fail"}},
        [{"id": 1, "v": "a", "n": 1, "w": 1}],
        SchemaDriftError,
        "'w' is new",
    ),
    ("a list for a number", {}, [{"id": 1, "v": "a", "n": [1]}], SchemaDriftError, "array<bigint>"),
    ("a system column's name", {}, [{"id": 1, "dlf_ValidTo": "a"}], SchemaDriftError, "dlf_ValidTo"),
    ("two names that become one", {}, [{"id": 1, "n p": 1, "np": 2}], SchemaDriftError, "'n p'"),
    ("a name of which nothing is left", {}, [{"id": 1, "=": 1}], SchemaDriftError, "'='"),
    (
        "an expression over a column that isn't there",
        {"columns": [KEY, {"name": "calc", "expression": "v || 'x'"}]},
        [{"id": 1, "n": 1}],
        TargetError,
        "'calc'",
    ),
    (
        "a declared type that there is no way to",
        {"columns": [KEY, {"name": "n", "datatype": "integer"}]},
        [{"id": 1, "v": "a", "n": [1]}],
        SchemaDriftError,
        "'n'",
    ),
]


def test_what_columns_tell_fails_before_anything_is_processed(lake: SmallLake) -> None:
    """Keys, drift, names and types, beside the table that is there; a sound entity isn't touched."""
    lake.load(entity(), "first", SOUND_WITH_NUMBER)
    before, version = lake.files(entity()), lake.version(entity())
    lake.put(entity(), "sound", SOUND_WITH_NUMBER)
    for number, (what, declared, rows, kind, told) in enumerate(MISFITS):
        things = entity(**declared)
        misfit = f"misfit{number}"
        lake.put(things, misfit, rows)

        errors = look_ahead(lake, things)

        assert [type(error) for error in errors] == [kind], what
        assert told in errors[0].message, what
        assert (lake.files(things), lake.version(things)) == (before, version), what
        found = verdicts(lake, things)
        assert (found["first"], found[misfit], found["sound"]) == (
            Verdict.PROCESSED,
            Verdict.FAILED,
            Verdict.READY,
        ), what
        result = lake.process(things)
        assert (result.slices, result.waiting) == ((), ("sound",)), what
        lake.put_aside()
    assert look_ahead(lake, entity()) == ()
    assert verdicts(lake, entity())["sound"] is Verdict.READY


def test_a_slice_is_seen_beside_the_table_that_the_first_one_will_make(lake: SmallLake) -> None:
    things = entity("historic")
    lake.put(things, "s1", SOUND)
    lake.put(things, "s2", [{"id": 1, "w": 5}])
    lake.put(things, "s3", [{"id": [1], "v": "a"}])

    (error,) = look_ahead(lake, things)

    assert isinstance(error, SchemaDriftError)
    assert verdicts(lake, things) == {"s1": Verdict.READY, "s2": Verdict.READY, "s3": Verdict.FAILED}
    assert lake.version_or_none(things) is None
    assert [done.name for done in lake.process(things).slices] == ["s1", "s2"]


@pytest.mark.nightly
def test_slices_of_the_same_columns_are_looked_at_once(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def counted(*arguments: Any, **more: Any) -> Any:
        seen.append(arguments[-1].slice_name)
        return fit_slice(*arguments, **more)

    monkeypatch.setattr("lakewright.slices.validation.fit_slice", counted)
    things = entity()
    for number in range(5):
        lake.put(things, f"s{number}", [{"id": n, "v": "x" * n} for n in range(number + 1)])
    lake.put(things, "s5", [{"id": 1, "v": "x", "day": date(2024, 1, 1)}])
    folder = lake.put(things, "s0", SOUND).parent / "s6"
    for number in (1, 2):
        (folder / f"p={number}").mkdir(parents=True)
        pq.write_table(table_of([{"id": number, "v": "a"}]), folder / f"p={number}" / "x")

    assert look_ahead(lake, things) == ()
    assert seen == ["s0", "s5", "s6"]
    assert lake.process(things).error is None
    lake.put(things, "s7", SOUND)
    shutil.copytree(folder, folder.with_name("s8"))
    assert look_ahead(lake, things) == ()
    assert seen[3:] == ["s7"]


def test_a_broken_file_fails_and_the_slices_after_it_wait(lake: SmallLake) -> None:
    things = entity()
    lake.put(things, "s1", SOUND)
    for name in ("s2", "s4"):
        file = lake.put(things, name, SOUND)
        file.write_bytes(file.read_bytes()[:-9])
    lake.put(things, "s3", [{"nothing": "fits"}])

    errors = look_ahead(lake, things)

    assert [type(error) for error in errors] == [SliceError, SliceError]
    found = verdicts(lake, things)
    assert [name for name, verdict in found.items() if verdict is Verdict.FAILED] == ["s2", "s4"]


def test_a_slice_whose_commit_landed_is_left_to_be_adopted(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = entity()
    file = lake.put(things, "s1", SOUND)
    monkeypatch.setenv("LAKEWRIGHT_FAILPOINT", "after_commit:raise")
    lake.process(things)
    monkeypatch.delenv("LAKEWRIGHT_FAILPOINT")
    (item,) = lake.items()
    lake.ledger.resolve(item.item_id, "again", fingerprint={})
    Path(file).write_bytes(b"")

    assert look_ahead(lake, things) == ()
    assert lake.process(things).slices[0].is_adopted


def test_an_expression_that_reaches_too_far_is_no_slices_fault(lake: SmallLake) -> None:
    sly = entity(transformations=[{"column": "w", "expression": "input_file_name()"}])
    lake.put(sly, "s1", SOUND)

    with pytest.raises(SpecError):
        look_ahead(lake, sly)
    assert verdicts(lake, sly) == {"s1": Verdict.READY}


def test_a_declaration_at_fault_fails_the_phase_and_no_slice_b2(lake: SmallLake) -> None:
    mistyped = entity(columns=[KEY, {"name": "vv", "datatype": "string"}])
    lake.put(mistyped, "s1", SOUND)

    with pytest.raises(SchemaDriftError, match="lacks the configured column 'vv'"):
        look_ahead(lake, mistyped)
    assert verdicts(lake, mistyped) == {"s1": Verdict.READY}


def test_what_is_no_parquet_is_looked_at_as_far_as_it_has_a_head(lake: SmallLake) -> None:
    texts = entity(settings={"bronze_format": "csv"})
    folder = Path(texts.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / "s1").write_text("id,v\n1,a\n")
    (folder / "s2").write_text("key,v\n1,a\n")

    (error,) = look_ahead(lake, texts)

    assert "'id'" in error.message
