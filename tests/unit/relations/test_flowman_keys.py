"""Keys of Flowman's relations and schemas that projects bring (E8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.projects import make_project, make_workspace

from lakewright.connections.database import DatabaseTable, TableName
from lakewright.connections.postgres import PostgresDialect
from lakewright.connections.sql import SqlDatabase
from lakewright.errors import SpecError
from lakewright.relations.catalog import TableRelation
from lakewright.relations.jdbc import SqlServerRelation, find_table_steps
from lakewright.relations.migration import MigrationPolicy
from lakewright.relations.relation import Relation
from lakewright.spec.models.fields import Field, parse_type

SERDE = "org.apache.hadoop.hive.serde2"


@pytest.mark.parametrize(
    ("keys", "file_format", "options"),
    [
        ("format: orc", "orc", {}),
        ("format: TEXTFILE", "csv", {"sep": "\x01", "nullValue": "\\N", "quote": "", "escape": "\\"}),
        (
            f"rowFormat: {SERDE}.OpenCSVSerde, serdeProperties: {{separatorChar: ';', x: y}}",
            "csv",
            {"sep": ";"},
        ),
        ("inputFormat: org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat", "parquet", {}),
        (f"rowFormat: {SERDE}.avro.AvroSerDe, options: {{a: b}}, writer: hive", "avro", {"a": "b"}),
    ],
)
def test_hives_formats_are_read_as_those_of_spark(
    tmp_path: Path, keys: str, file_format: str, options: dict[str, str]
) -> None:
    """E8: `rowFormat`, `inputFormat`, `serdeProperties`, `writer` and `textfile` of a hiveTable."""
    workspace = make_workspace(tmp_path, f"relations: {{t: {{kind: hiveTable, table: t, {keys}}}}}")
    found = Relation.named(workspace, "t")
    assert isinstance(found, TableRelation)
    assert (found.file_format, found.file_options) == (file_format, options)


def test_a_serde_that_is_not_known_is_named_with_those_that_are(tmp_path: Path) -> None:
    """E8: nothing is read in another format than the one that is declared."""
    with pytest.raises(SpecError, match=r"rowFormat 'x\.RegexSerDe' is not supported; known are Parquet"):
        make_project(tmp_path, "relations: {t: {kind: hiveTable, table: t, rowFormat: x.RegexSerDe}}")
    with pytest.raises(SpecError, match="`outputFormat` needs"):
        make_project(tmp_path, "relations: {t: {kind: hiveTable, table: t, outputFormat: x}}")


def test_views_take_a_migration_policy_and_a_delta_table_both_places(tmp_path: Path) -> None:
    """E8: a table of the catalog at a location is ordered after what writes either."""
    workspace = make_workspace(
        tmp_path,
        """
        connections: {db: {kind: jdbc, url: "jdbc:postgresql://h/d"}}
        relations:
          view: {kind: hiveView, view: v, sql: SELECT 1, migrationPolicy: strict}
          other: {kind: jdbcView, view: v, connection: db, sql: SELECT 1, migrationPolicy: RELAXED}
          both: {kind: deltaTable, database: d, table: t, location: here}
        """,
    )
    assert {str(each) for each in workspace.relation("both").resources(workspace)} == {
        "table:d.t",
        f"file:{tmp_path}/here",
    }
    assert workspace.relation("view").table_sql(workspace) == "`v`"


def test_a_column_of_a_database_is_altered_to_text() -> None:
    """E8: PostgreSQL converts numbers, dates and the like to text by itself, but not bytes."""
    database = PostgresDialect(SqlDatabase.__new__(SqlDatabase))

    def sql(before: str) -> str | None:
        present = DatabaseTable((Field(name="a", type=parse_type(before)),))
        wanted = DatabaseTable((Field(name="a", type=parse_type("string")),))
        (step,) = find_table_steps(database, TableName("t"), present, wanted, MigrationPolicy.RELAXED)
        return step.sql

    assert sql("int") == sql("date") == sql("decimal(9,2)") == 'ALTER TABLE "t" ALTER COLUMN "a" TYPE text'
    assert sql("binary") is None


def test_a_schema_is_read_from_an_address(tmp_path: Path) -> None:
    """E8: `url` of a schema."""
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long"}]}))
    kinds = {name: f"{{kind: spark, url: {url}}}" for name, url in (("a", file.as_uri()), ("b", "ftp://x/y"))}
    relations = [f"  {name}: {{kind: empty, schema: {text}}}" for name, text in kinds.items()]
    workspace = make_workspace(tmp_path, "\n".join(["relations:", *relations]))
    assert [field.ddl for field in workspace.relation("a").fields(workspace)] == ["`id` bigint"]
    with pytest.raises(SpecError, match="only https, http and file are supported"):
        workspace.relation("b").fields(workspace)
    file.unlink()
    with pytest.raises(SpecError, match="can't be read"):
        workspace.relation("a").fields(workspace)


def test_a_table_of_sql_server_may_be_stored_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E14: `sqlserver` is a `jdbcTable` with `storageFormat`."""
    relation = "{kind: sqlserver, connection: db, table: t, schema: {fields: {name: id, type: int}}"
    workspace = make_workspace(
        tmp_path,
        f"""
        connections: {{db: {{kind: jdbc, url: "jdbc:sqlserver://h;databaseName=d"}}}}
        relations:
          rows: {relation}}}
          columns: {relation}, storageFormat: columnstore}}
        """,
    )
    dialect = PostgresDialect(SqlDatabase.__new__(SqlDatabase))
    monkeypatch.setattr(SqlServerRelation, "dialect", lambda *_: dialect)
    rows, columns = (Relation.named(workspace, name) for name in ("rows", "columns"))
    assert isinstance(rows, SqlServerRelation)
    assert isinstance(columns, SqlServerRelation)
    assert rows.creation_sql(workspace) == ['CREATE TABLE "t" ("id" integer)']
    assert columns.creation_sql(workspace) == [
        'CREATE TABLE "t" ("id" integer)',
        'CREATE CLUSTERED COLUMNSTORE INDEX "t_columnstore" ON "t"',
    ]
    assert {str(each) for each in rows.resources(workspace)} == {"jdbc:sqlserver://h/t"}
