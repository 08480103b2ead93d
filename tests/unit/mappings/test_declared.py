"""What mappings, relations and targets say of themselves before any of them is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.projects import KINDS, make_project

from lakewright.errors import SpecError
from lakewright.mappings.columns import ExtendMapping
from lakewright.mappings.sql import SqlMapping
from lakewright.run.kinds import KINDS as CLASSES
from lakewright.run.kinds import NOT_OFFERED


@pytest.mark.parametrize("category", sorted(CLASSES))
def test_every_kind_has_a_class_and_says_what_its_keys_are_for(category: str) -> None:
    for kind in KINDS.kinds(category):
        model = KINDS.find(category, kind)
        assert model.__doc__, kind
        for name, field in model.model_fields.items():
            assert field.description or name in {"name", "kind"}, f"{category} {kind}: {name}"
    for kind, remedy in NOT_OFFERED.get(category, {}).items():
        assert KINDS.find_or_none(category, kind) is None
        assert remedy.endswith(".")


def test_declaring_needs_no_engine() -> None:
    modules = {entry.partition(":")[0] for kinds in CLASSES.values() for entry in kinds.values()}
    imports = "\n".join(f"import {module}" for module in sorted(modules))
    check = f"import sys\n{imports}\nassert not {{'pyspark', 'delta', 'deltalake'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("mappings: {a: {kind: sql}}", "kind 'sql' needs exactly one of `sql`, `file`"),
        ("mappings: {a: {kind: sql, sql: SELECT 1 FROM b}}", "there is no mapping 'b'"),
        (
            "mappings: {a: {kind: sql, sql: SELECT 1 FROM b}}\nrelations: {b: {kind: empty}}",
            "declare the mapping that reads it: `b: {kind: relation, relation: b}`",
        ),
        ("mappings: {a: {kind: filter, input: a, conditoin: x}}", "unknown key 'conditoin'"),
        ("mappings: {a: {kind: values}}", "kind 'values' needs either `columns` or `schema`"),
        (
            "mappings: {a: {kind: join, inputs: [a, a, a], condition: x}}",
            "a join by `condition` needs exactly two inputs",
        ),
        ("mappings: {a: {kind: cast, input: a, columns: {x: innt}}}", "there is no type 'innt'"),
        ("mappings: {a: {kind: readStream}}", "kind 'readStream' of mapping is not supported"),
        ("mappings: {a: {kind: relation, relation: {kind: fil}}}", "unknown kind 'fil' of relation"),
        ("mappings: {a: {kind: relation, relation: r}}", "there is no relation 'r'"),
        ("relations: {a: {kind: kafka}}", "kind 'kafka' of relation is not supported"),
        ("relations: {a: {kind: file, location: x, format: xml}}", "format"),
        ("relations: {a: {kind: delta}}", "needs `location`, `table` or both"),
        (
            "relations: {a: {kind: view, view: v}}",
            "needs exactly one of `sql`, `file`, `mapping`",
        ),
        ("relations: {a: {kind: empty, schema: {kind: json}}}", "needs one of `file`, `url` and `spec`"),
        ("targets: {a: {kind: relation, relation: r, mode: sometimes}}", "no output mode 'sometimes'"),
        ("targets: {a: {kind: relation, relation: r, buildPolicy: x}}", "no build policy 'x'"),
        ("targets: {a: {kind: merge, relation: r, mapping: m, clauses: []}}", "clauses"),
        (
            "targets: {a: {kind: verify, assertions: {x: {kind: columns, mapping: m, expected: y IS}}}}",
            "'y IS' is not a rule",
        ),
        (
            "targets: {a: {kind: verify, assertions: {x: {kind: columns, mapping: m, expected: []}}}}",
            "expected: it is empty, so that the assertion checks nothing",
        ),
        (
            "targets: {a: {kind: verify, assertions: {x: {kind: expression, mapping: m, expected: []}}}}",
            "expected: it is empty, so that the assertion checks nothing",
        ),
        (
            "targets: {a: {kind: measure, measures: {x: {kind: sql, query: SELECT * FROM m}}}}",
            "there is no mapping 'm'",
        ),
    ],
)
def test_what_is_declared_wrong_is_found_when_the_project_is_loaded(
    tmp_path: Path, section: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        make_project(tmp_path, section)
    assert message in str(caught.value)
    assert "module.yml:1" in str(caught.value)


def extend(**columns: str) -> ExtendMapping:
    return ExtendMapping(name="m", kind="extend", input="x", columns=columns)


def test_new_columns_come_in_the_order_that_they_need() -> None:
    assert extend(c="a + b", b="A * 2", a="upper(x)").order() == ("a", "b", "c")
    assert extend(a="a + 1").order() == ("a",)
    with pytest.raises(SpecError, match="columns of mapping 'm' depend on each other: "):
        extend(a="b", b="a").order()


def test_a_query_names_its_mappings_unless_expressions_may_change_them() -> None:
    plain = SqlMapping(name="m", kind="sql", sql="SELECT * FROM a JOIN b.c JOIN d")
    assert [each.name for each in plain.references()] == ["a", "d"]
    assert list(SqlMapping(name="m", kind="sql", sql="SELECT * FROM ${x}_y").references()) == []
