"""Relations of the catalog: tables, views, and what others provide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.projects import make_workspace
from tests.reading import rows_of_files
from tests.sessions import same
from tests.spark.relations.relations import rows, stored

from lakewright.errors import MigrationError, SpecError
from lakewright.lake.paths import local_path
from lakewright.lake.spark_errors import spark_errors
from lakewright.lake.table import find_entry
from lakewright.plan.observation import Answer
from lakewright.relations.catalog import ViewRelation
from lakewright.relations.migration import Tolerated
from lakewright.relations.relation import OutputMode, Relation
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
relations:
  plain:
    kind: table
    database: kinds
    table: plain
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: int}, {name: name, type: string}]}
  whole: {kind: table, database: kinds, table: whole, schema: {fields: {name: id, type: int}}}
  wider:
    kind: table
    database: kinds
    table: plain
    migrationPolicy: STRICT
    partitions: [{name: day, type: date}]
    schema:
      fields: [{name: id, type: int, description: Key}, {name: name, type: string}, {name: n, type: int}]
  other: {kind: table, database: kinds, table: plain, schema: {fields: {name: id, type: date}}}
  delta: {kind: deltaTable, database: kinds, table: d, mergeKey: id, schema: {fields: {name: id, type: int}}}
  outside:
    kind: hiveTable
    database: kinds
    table: outside
    external: true
    format: textfile
    location: PLACE/outside
    schema: {fields: [{name: id, type: int}, {name: name, type: string}]}
  texts:
    kind: table
    database: kinds
    table: texts
    format: csv
    schema: {fields: [{name: id, type: int}, {name: name, type: string}]}
  more_texts:
    kind: table
    database: kinds
    table: texts
    format: csv
    schema: {fields: [{name: id, type: int}, {name: note, type: string}, {name: name, type: string}]}
  open: {kind: table, database: kinds, table: open, partitions: [{name: day, type: date}]}
  coded:
    kind: table
    database: kinds
    table: coded
    partitions: [{name: code, type: string}]
    schema: {fields: {name: id, type: int}}
  delta_coded: {kind: delta, location: PLACE/coded, partitions: [{name: code, type: string}]}
  placed: {kind: deltaTable, database: kinds, table: placed, location: PLACE/placed}
  view: {kind: view, database: kinds, view: v, sql: "SELECT id FROM kinds.plain"}
  changed: {kind: view, database: kinds, view: v, sql: "SELECT id + 1 AS id FROM kinds.plain"}
  kept: {kind: view, database: kinds, view: v, sql: SELECT 1, migrationStrategy: NEVER}
  mapped: {kind: hiveView, database: kinds, view: m, mapping: joined}
  unmapped: {kind: view, view: u, mapping: values}
  star: {kind: view, database: kinds, view: star, sql: "SELECT * FROM kinds.narrowed"}
  named: {kind: view, database: kinds, view: named, sql: "SELECT id, note FROM kinds.narrowed"}
  provided: {kind: provided, table: kinds.plain}
  generic:
    kind: generic
    format: json
    options: {path: PLACE/generic}
    schema: {fields: {name: id, type: int}}
mappings:
  plain: {kind: relation, relation: plain, filter: id > 0}
  seen: {kind: sql, sql: "SELECT * FROM kinds.v"}
  few: {kind: filter, input: plain, condition: id < 9}
  joined: {kind: sql, sql: "WITH few AS (SELECT * FROM few) SELECT id, count(*) AS n FROM few GROUP BY id"}
  values: {kind: values, columns: {x: int}}
"""


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession) -> Iterator[Workspace]:
    yield make_workspace(tmp_path, PROJECT.replace("PLACE", str(tmp_path)), sessions=same(spark))
    spark.sql("DROP DATABASE IF EXISTS kinds CASCADE")


def test_a_table_of_the_catalog_lives_and_changes(workspace: Workspace) -> None:
    plain, day = stored(workspace, "plain"), {"day": "2022-01-01"}
    assert plain.observe(workspace).exists is Answer.NO
    plain.create(workspace)
    assert plain.observe(workspace, day).filled is Answer.NO

    def write(query: str, mode: OutputMode, **partition: str) -> int:
        frame = workspace.spark.sql(query)
        return plain.write(workspace, frame, partition=partition, mode=mode).rows

    assert write("SELECT 1 AS id, 'a' AS name", OutputMode.OVERWRITE, **day) == 1
    write("SELECT 2 AS id, 'b' AS name", OutputMode.APPEND, **day)
    write("SELECT 3 AS id, DATE'2022-01-02' AS day", OutputMode.OVERWRITE_DYNAMIC)
    assert [row[0] for row in rows(plain.read(workspace))] == ["1", "2", "3"]
    plain.truncate(workspace, day)
    assert rows(plain.read(workspace)) == [("3", None, "2022-01-02")]
    assert plain.observe(workspace, day).filled is Answer.NO
    assert plain.observe(workspace).changes == ()
    assert rows(workspace.relation("provided").read(workspace)) == [("3", None, "2022-01-02")]

    wider = stored(workspace, "wider")
    changes = [change.description for change in wider.observe(workspace).changes]
    assert changes == ["change the comment of column id", "add column n int"]
    wider.migrate(workspace, allow_data_loss=False)
    assert wider.observe(workspace).changes == ()
    with pytest.raises(MigrationError, match="partition by nothing instead of day"):
        stored(workspace, "other").migrate(workspace, allow_data_loss=False)
    wider.destroy(workspace)
    assert wider.observe(workspace).exists is Answer.NO


def test_files_without_names_have_the_columns_in_the_order_of_the_table(workspace: Workspace) -> None:
    """A column that is declared between others is added behind them; CSV is read by position."""
    stored(workspace, "texts").create(workspace)
    texts = stored(workspace, "more_texts")
    texts.migrate(workspace, allow_data_loss=False)
    frame = workspace.spark.sql("SELECT 1 AS id, 'a note' AS note, 'a name' AS name")
    texts.write(workspace, frame, partition={}, mode=OutputMode.APPEND)
    assert rows(texts.read(workspace).select("id", "note", "name")) == [("1", "a note", "a name")]


@pytest.mark.parametrize("name", ["coded", "delta_coded"])
def test_no_row_gets_into_the_partition_of_null_by_its_text(workspace: Workspace, name: str) -> None:
    relation = stored(workspace, name)
    made = workspace.spark.sql("SELECT 1 AS id, 'a' AS code")
    relation.write(workspace, made, partition={}, mode=OutputMode.APPEND)
    for text in ("", "__HIVE_DEFAULT_PARTITION__"):
        frame = workspace.spark.sql(f"SELECT 2 AS id, '{text}' AS code")
        with pytest.raises(spark_errors(), match=r"stands for null|is named for null"):
            relation.write(workspace, frame, partition={}, mode=OutputMode.APPEND)
        with pytest.raises(SpecError, match="stands for null"):
            relation.write(workspace, made, partition={"code": text}, mode=OutputMode.APPEND)
        with pytest.raises(SpecError, match="stands for null"):
            relation.read(workspace, [{"code": text}])
    assert rows(relation.read(workspace), "id", "code") == [("1", "a")]


@pytest.mark.nightly  # a rare name
def test_no_row_gets_into_a_partition_whose_text_ends_with_a_space(workspace: Workspace) -> None:
    """Hive's catalog finds `code=a` in place of `code=a `, and then refuses each new partition."""
    relation = stored(workspace, "coded")
    made = workspace.spark.sql("SELECT 1 AS id, ' a' AS code")
    padded = workspace.spark.sql("SELECT 2 AS id, 'a ' AS code")
    told = "ends with a space; Hive's catalog may take it for the value without the space"
    with pytest.raises(SpecError, match=f"partition column code: the value 'a ' {told}"):
        relation.write(workspace, made, partition={"code": "a "}, mode=OutputMode.APPEND)
    assert relation.observe(workspace).exists is Answer.NO
    relation.write(workspace, made, partition={}, mode=OutputMode.APPEND)
    with pytest.raises(spark_errors(), match=f"partition column 'code': the text a  {told}"):
        relation.write(workspace, padded, partition={}, mode=OutputMode.APPEND)
    assert rows(relation.read(workspace), "id", "code") == [("1", " a")]


@pytest.mark.nightly  # test_storage has a reader beside the same write of files
def test_readers_never_see_a_part_of_a_write_to_a_table(
    workspace: Workspace, reading: Callable[[Callable[[], int]], AbstractContextManager[list[int]]]
) -> None:
    whole = stored(workspace, "whole")
    many = workspace.spark.sql("SELECT CAST(id AS INT) AS id FROM range(0, 1000, 1, 2)")
    assert whole.write(workspace, many, partition={}, mode=OutputMode.OVERWRITE).rows == 1000
    entry = find_entry(workspace.lake, "kinds.whole")
    folder = local_path(entry.location or "") if entry else None
    assert folder is not None
    with reading(partial(rows_of_files, folder)) as seen:
        for _ in range(3):
            whole.write(workspace, many, partition={}, mode=OutputMode.OVERWRITE)
    assert set(seen) == {1000}
    assert whole.read(workspace).count() == 1000


@pytest.mark.nightly
def test_a_table_without_schema_is_created_with_the_columns_of_its_first_rows(workspace: Workspace) -> None:
    relation, day = stored(workspace, "open"), {"day": "2022-01-01"}
    relation.create(workspace)
    assert relation.observe(workspace).exists is Answer.NO
    first = workspace.spark.sql("SELECT 1 AS id, 'a' AS name")
    assert relation.write(workspace, first, partition=day, mode=OutputMode.OVERWRITE).left_out == ()
    wider = workspace.spark.sql("SELECT 2 AS id, 'b' AS name, 'x' AS note")
    assert relation.write(workspace, wider, partition=day, mode=OutputMode.APPEND).left_out == ("note",)
    assert rows(relation.read(workspace), "id", "name", "day") == [
        ("1", "a", "2022-01-01"),
        ("2", "b", "2022-01-01"),
    ]


def test_a_delta_table_of_the_catalog_is_written_by_name(workspace: Workspace) -> None:
    delta = stored(workspace, "delta")
    delta.create(workspace)
    one = workspace.spark.sql("SELECT 1 AS id")
    for mode, count in ((OutputMode.OVERWRITE, 1), (OutputMode.APPEND, 2), (OutputMode.OVERWRITE, 1)):
        delta.write(workspace, one, partition={}, mode=mode)
        assert delta.read(workspace).count() == count
    two = workspace.spark.sql("SELECT explode(array(1, 2)) AS id")
    assert delta.write(workspace, two, partition={}, mode=OutputMode.UPDATE).rows == 2
    assert rows(delta.read(workspace)) == [("1",), ("2",)]
    delta.destroy(workspace)
    assert delta.observe(workspace).exists is Answer.NO


def view(workspace: Workspace, name: str) -> ViewRelation:
    found = Relation.named(workspace, name)
    assert isinstance(found, ViewRelation)
    return found


def test_a_view_is_replaced_when_its_query_differs(workspace: Workspace) -> None:
    plain = stored(workspace, "plain")
    plain.create(workspace)
    plain.write(
        workspace,
        workspace.spark.sql("SELECT 1 AS id, DATE'2022-01-01' AS day"),
        partition={},
        mode=OutputMode.APPEND,
    )
    first = view(workspace, "view")
    assert [str(each) for each in first.requires(workspace)] == ["table:kinds.plain"]
    assert first.observe(workspace).exists is Answer.NO
    first.create(workspace)
    assert first.observe(workspace).changes == ()
    assert rows(first.read(workspace)) == [("1",)]
    assert isinstance(view(workspace, "kept").observe(workspace).changes[0], Tolerated)
    changed = view(workspace, "changed")
    assert changed.observe(workspace).changes[0].description == "replace the view's query"
    changed.migrate(workspace, allow_data_loss=False)
    assert rows(first.read(workspace)) == [("2",)]
    first.destroy(workspace)
    assert first.observe(workspace).exists is Answer.NO

    mapped = view(workspace, "mapped")
    assert [str(each) for each in mapped.requires(workspace)] == ["table:kinds.plain"]
    mapped.create(workspace)
    assert rows(mapped.read(workspace)) == [("1", "1")]
    mapped.destroy(workspace)
    with pytest.raises(SpecError, match="mapping 'values' of kind 'values' cannot be used in a view"):
        view(workspace, "unmapped").create(workspace)


@pytest.mark.nightly  # the test above makes a view anew
def test_a_view_is_made_anew_after_a_column_of_its_table_is_gone(workspace: Workspace) -> None:
    """Spark names no column of such a view, and can't read it: CREATE failed again and again."""
    spark, star = workspace.spark, view(workspace, "star")
    spark.sql("CREATE DATABASE IF NOT EXISTS kinds")
    spark.sql("CREATE TABLE kinds.narrowed (id INT, note STRING) USING parquet")
    named = view(workspace, "named")
    star.create(workspace)
    named.create(workspace)
    spark.sql("DROP TABLE kinds.narrowed")
    spark.sql("CREATE TABLE kinds.narrowed (id INT, extra STRING) USING parquet")

    (change,) = star.observe(workspace).changes
    assert change.description.startswith("make the view anew: [INCOMPATIBLE_VIEW_SCHEMA_CHANGE] ")
    assert "column note cannot be resolved" in change.description
    star.migrate(workspace, allow_data_loss=False)
    assert star.observe(workspace).changes == ()
    assert star.read(workspace).columns == ["id", "extra"]

    # The column of the query itself is gone: no plan of Spark's is told.
    (change,) = named.observe(workspace).changes
    assert "`note` cannot be resolved" in change.description
    assert "\n" not in change.description
    assert "Project" not in change.description
    named.destroy(workspace)
    star.destroy(workspace)
    spark.sql("DROP TABLE kinds.narrowed")


def test_a_view_shows_what_its_table_was_rewritten_to(workspace: Workspace) -> None:
    """E4: the session of an instance remembers the files of the tables that a view reads."""
    plain, day = stored(workspace, "plain"), {"day": "2022-01-01"}
    plain.create(workspace)

    def rewrite(value: int) -> None:
        frame = workspace.spark.sql(f"SELECT {value} AS id")
        plain.write(workspace, frame, partition=day, mode=OutputMode.OVERWRITE)

    rewrite(1)
    first = view(workspace, "view")
    first.create(workspace)
    assert rows(first.read(workspace)) == rows(workspace.frame("seen")) == [("1",)]
    rewrite(2)
    assert rows(first.read(workspace)) == [("2",)]
    workspace.invalidate(plain.resources(workspace))
    assert rows(workspace.frame("seen")) == [("2",)]
    first.destroy(workspace)


def test_an_external_table_is_destroyed_with_its_files(workspace: Workspace, tmp_path: Path) -> None:
    """E10: otherwise the table would be filled as soon as it is created again."""
    outside, file = stored(workspace, "outside"), tmp_path / "outside"
    for _ in range(2):
        outside.create(workspace)
        assert outside.observe(workspace).filled is Answer.NO
        frame = workspace.spark.sql("SELECT 1 AS id")
        outside.write(workspace, frame, partition={}, mode=OutputMode.APPEND)
        assert outside.observe(workspace).filled is Answer.YES
        # E8: the text that Hive writes.
        assert [each.read_text() for each in file.glob("part-*")] == ["1\x01\\N\n"]
        assert rows(outside.read(workspace)) == [("1", None)]
        outside.destroy(workspace)
        assert not file.exists()


@pytest.mark.nightly  # test_short_form.py has such tables of slices
def test_a_delta_table_of_the_catalog_lies_where_it_is_declared(workspace: Workspace, tmp_path: Path) -> None:
    """E8: `table` and `location` together; a table that is there already is taken as it is."""
    placed = stored(workspace, "placed")
    for expected in (1, 2):
        one = workspace.spark.sql("SELECT 1 AS id")
        placed.write(workspace, one, partition={}, mode=OutputMode.APPEND)
        assert (tmp_path / "placed" / "_delta_log").is_dir()
        assert placed.read(workspace).count() == expected
        if expected == 1:
            workspace.spark.sql("DROP TABLE kinds.placed")
    placed.destroy(workspace)
    assert placed.observe(workspace).exists is Answer.NO
    assert not (tmp_path / "placed").exists()


@pytest.mark.nightly  # one line of Spark's
def test_any_data_source_can_be_written_and_read(workspace: Workspace) -> None:
    generic = stored(workspace, "generic")
    frame = workspace.spark.sql("SELECT '5' AS id, 'x' AS other")
    for mode in (OutputMode.OVERWRITE, OutputMode.APPEND):
        assert generic.write(workspace, frame, partition={}, mode=mode).rows == 1
    assert rows(generic.read(workspace)) == [("5",), ("5",)]
    assert generic.observe(workspace).exists is Answer.UNKNOWN
