"""A loaded project: its jobs' parameters, its tests' stages, its secrets, and the schema of its files."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.spec.kinds import KINDS, FileRelation, RelationTarget, SqlAssertion, load

from lakewright.errors import SpecError
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.secrets import credentials_in, is_secret_name
from lakewright.spec.expressions.values import Duration
from lakewright.spec.json_schema import module_schema, project_schema
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.loading.config import read_config
from lakewright.spec.models.job import Parameter
from lakewright.spec.suggestions import nearest, suggestion


@pytest.mark.parametrize(
    ("declared", "text", "value", "step"),
    [
        ({"type": "date", "granularity": "P1M"}, "2022-11-01", date(2022, 11, 1), Duration(months=1)),
        ({"type": "date", "granularity": "2"}, "2022-11-01", date(2022, 11, 1), Duration(days=2)),
        (
            {"type": "Timestamp", "granularity": "PT15M"},
            "2022-11-01T06:00",
            datetime(2022, 11, 1, 6, tzinfo=UTC),
            Duration(microseconds=900_000_000),
        ),
        ({"type": "integer", "granularity": "2"}, "7", 7, 2),
        ({"type": "float", "granularity": "0.5"}, "7", 7.0, Decimal("0.5")),
        ({"type": "duration"}, "P1D", Duration(days=1), None),
        ({}, "0100", "0100", None),
        ({"type": "boolean"}, "NO", False, None),
        ({"type": "date", "granularity": "$size"}, "2022-11-01", date(2022, 11, 1), Duration(days=3)),
    ],
)
def test_a_parameter_reads_values_and_its_step(
    declared: dict[str, str], text: str, value: Any, step: Any
) -> None:
    parameter = Parameter.model_validate({"name": "p", **declared})
    assert parameter.parse(text) == value
    assert parameter.step(Scope({"size": "P3D"})) == step


def test_a_default_may_be_an_expression() -> None:
    parameter = Parameter.model_validate({"name": "p", "type": "date", "default": "$day"})
    assert parameter.default_value(Scope({"day": date(2022, 1, 1)})) == date(2022, 1, 1)
    with pytest.raises(SpecError, match="default of parameter 'p': 'soon' is not a date"):
        parameter.default_value(Scope({"day": "soon"}))
    with pytest.raises(SpecError, match="no default"):
        Parameter(name="p").default_value(Scope())


@pytest.mark.parametrize("text", ["0", "PT0S", "P0D", "x", "PT1H"])
def test_a_step_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Parameter.model_validate({"name": "p", "type": "date"}).parse_step(text)


STAGES = """
    environment: [year=2000, base=/data]
    relations:
      raw: {kind: file, location: $base/$year}
      out: {kind: file, location: $base/out}
    mappings:
      m: {kind: sql, sql: x}
      n: {kind: values, records: [project]}
    templates:
      rows: {kind: mapping, parameters: {name: row}, template: {kind: values, records: [$row]}}
    targets:
      build: {kind: relation, relation: out, mapping: m}
    tests:
      common:
        environment: [year=2012]
        overrideMappings:
          m: {kind: values, records: [common]}
          n: {kind: template/rows, row: $year}
      one:
        description: the test
        extends: common
        environment: [year=2013]
        targets: build
        fixtures:
          prepare: {kind: relation, relation: raw}
        overrideMappings:
          m: {kind: values, records: [$year]}
        overrideRelations:
          raw: {kind: file, location: mocked, limit: $year}
        assertions:
          right: {kind: sql, query: SELECT 1, expected: [[$year, null]]}
    """


def test_a_test_runs_on_the_project_with_its_own_parts_in_place(tmp_path: Path) -> None:
    project = load(tmp_path, STAGES)
    stage = set_up_case(project, "one")
    staged, scope = stage.project, stage.project.scope
    assert (stage.targets, stage.fixtures, stage.description) == (("build",), ("prepare",), "the test")
    assert staged.mappings["m"].resolve(scope).model_dump()["records"] == ("2013",)
    assert staged.mappings["n"].resolve(scope).model_dump()["records"] == ("2013",)
    raw = cast("FileRelation", staged.relations["raw"].resolve(scope))
    assert (raw.location, raw.limit) == ("mocked", 2013)
    assert cast("FileRelation", staged.relations["out"].resolve(scope)).location == "/data/out"
    assert cast("RelationTarget", staged.targets["prepare"].resolve(scope)).relation == "raw"
    assertion = cast("SqlAssertion", stage.assertions["right"].resolve(scope))
    assert assertion.expected == [["2013", None]]
    assert project.mappings["n"].resolve(project.scope).model_dump()["records"] == ("project",)


def test_an_unknown_test_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no test 'on' \(did you mean 'one'"):
        set_up_case(load(tmp_path, STAGES), "on")


def test_secrets_of_connections_and_the_manifest_are_known(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        environment: [db_password=$System.getenv('PW'), stage=dev]
        manifest: {kind: postgres, url: "postgresql://me:hush-1@host/db"}
        connections:
          db: {kind: jdbc, url: "jdbc:x://u:hush-2@h", password: $db_password}
          web: {settings: {server: x, api: {token: hush-4}}}
        """,
        environ={"PW": "hush-3"},
    )
    assert project.secrets == {"hush-1", "hush-2", "hush-3", "hush-4"}


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(
            (name, True)
            for name in (
                "password",
                "PGPASSWORD",
                "jdbcPassword",
                "api_key",
                "spark.hadoop.fs.s3a.secret.key",
            )
        ),
        *((name, True) for name in ("AWS_SESSION_TOKEN", "secretValue", "tokens", "private-key")),
        *(
            (name, False)
            for name in ("keyspace", "monkey", "primary_key", "businessKeys", "tokenizer", "path", "")
        ),
    ],
)
def test_names_tell_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


def test_passwords_in_urls_are_found() -> None:
    assert credentials_in("a https://u:p%40ss@h/x and s3a://bucket/key@x, mailto:a@b") == {"p%40ss"}


def test_configuration_is_sorted_out() -> None:
    found, faults, warnings = read_config(
        {
            "spark.x": "1",
            "flowman.default.target.outputMode": "append",
            "lakewright.default.target.outputMode": "overwrite",
            "flowman.execution.target.forceDirty": "true",
            "flowman.nix": "x",
            "lakewright.nix": "x",
            "hive.x": "y",
        },
        {},
    )
    assert found == {
        "spark.x": "1",
        "lakewright.default.target.outputMode": "overwrite",
        "lakewright.execution.target.forceDirty": "true",
    }
    assert [fault.message for fault in faults] == ["unknown configuration 'lakewright.nix'"]
    assert ["flowman.nix" in warnings[0].message, "hive.x" in warnings[1].message] == [True, True]


def test_a_kind_is_imported_when_it_is_first_needed() -> None:
    kinds = Registry({"target": {"validate": "tests.unit.spec.kinds:ValidateTarget"}})
    assert kinds.find("target", "validate") is kinds.find("target", "validate")
    with pytest.raises(SpecError, match="did you mean 'validate'"):
        kinds.find("target", "validat")
    with pytest.raises(SpecError, match="unknown kind 'x' of nix"):
        kinds.find("nix", "x")


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("relatoin", ["relation", "target"], "relation"),
        ("RELATION", ["relation"], "relation"),
        ("xyz", ["relation"], None),
        ("x" * 1000, ["relation"], None),
    ],
)
def test_a_near_name_is_found(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found


def test_without_a_near_name_there_is_a_list() -> None:
    assert suggestion("xyz", ["b", "a"]) == "there are: a, b"
    assert suggestion("xyz", ["c", "b", "a"], shown=2) == "there are: a, b, …"
    assert suggestion("xyz", []) is None


def references_in(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(references_in(inner) for inner in schema.values()), set())
    if isinstance(schema, list):
        return set().union(*(references_in(inner) for inner in schema))
    return set()


def test_the_schema_of_a_module_knows_every_kind_and_refers_to_what_is_there() -> None:
    schema = module_schema(KINDS)
    assert references_in(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert schema["$defs"]["relation"]["properties"]["kind"]["anyOf"][0] == {"enum": ["file"]}
    assert set(schema["properties"]) >= {"relations", "entities", "jobs", "profiles", "lake"}
    file = schema["$defs"]["FileRelation"]
    assert set(file["required"]) == {"location"}
    assert {"type": "integer"} in file["properties"]["limit"]["anyOf"][0]["anyOf"]
    assert "schema" in file["properties"]
    assert "name" not in file["properties"]


def test_the_schema_of_the_project_file_has_its_keys() -> None:
    schema = project_schema()
    assert references_in(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert set(schema["properties"]) == {
        "name",
        "version",
        "description",
        "modules",
        "imports",
        "lake",
        "manifest",
    }
    assert set(schema["required"]) == {"name", "modules"}
