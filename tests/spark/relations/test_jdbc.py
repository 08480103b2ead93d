"""Relations in databases: PostgreSQL with and without a JVM, and another database by Spark alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import Started, no_session, same
from tests.spark.relations.relations import rows

from lakewright.connections.jvm import JvmDatabase
from lakewright.errors import (
    DatabaseUnavailable,
    DataLossError,
    LeaseLost,
    MigrationError,
    SpecError,
    TargetError,
)
from lakewright.lake.spark_errors import translated_failures
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.relations.jdbc import JdbcTableRelation
from lakewright.relations.migration import MigrationPolicy, Tolerated
from lakewright.relations.relation import ManagedRelation, OutputMode, Relation
from lakewright.spec.reason import Reason
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
connections:
  shop: {kind: jdbc, url: URL, username: postgres, password: very-secret}
  closed: {kind: jdbc, url: "jdbc:postgresql://127.0.0.1:1/none", username: me, password: very-secret}
relations:
  sales:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    description: What was sold
    primaryKey: [day, id]
    indexes: {name: by_item, columns: item}
    partitions: {name: day, type: date}
    schema:
      fields:
        - {name: id, type: int}
        - {name: item, type: varchar(5), description: it's an item}
        - {name: price, type: "decimal(10,2)"}
        - {name: tags, type: array<string>}
        - {name: at, type: timestamp}
  wider:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    primaryKey: [id, day]
    indexes: [{name: by_item, columns: [item, cost]}, {name: by_at, columns: at}]
    partitions: {name: day, type: date}
    schema:
      fields:
        - {name: id, type: long}
        - {name: item, type: varchar(20)}
        - {name: cost, type: "decimal(12,2)", renamedFrom: price}
        - {name: tags, type: array<string>}
        - {name: at, type: timestamp}
        - {name: note, type: string}
  strict:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    migrationPolicy: STRICT
    primaryKey: [id, day]
    partitions: {name: day, type: date}
    schema: {fields: [{name: id, type: long}, {name: item, type: varchar(20)}]}
  other:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    schema: {fields: {name: id, type: date}}
  never:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    migrationStrategy: NEVER
    schema: {fields: {name: new, type: date}}
  replaced:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: Sales
    migrationStrategy: ALTER_REPLACE
    schema: {fields: {name: id, type: date}}
  found: {kind: jdbcTable, connection: shop, database: SCHEMA, table: Sales}
  open: {kind: jdbcTable, connection: shop, database: SCHEMA, table: open, primaryKey: id}
  made:
    kind: jdbcTable
    connection: shop
    database: SCHEMA
    table: made
    sql: ["CREATE TABLE SCHEMA.made (id integer, n integer DEFAULT 7)", "CREATE INDEX ON SCHEMA.made (id)"]
  cheap:
    kind: jdbcQuery
    connection: shop
    sql: SELECT "id", "price" FROM SCHEMA."Sales" WHERE "price" < 2;
  view: {kind: jdbcView, connection: shop, database: SCHEMA, view: v, sql: 'SELECT "id" FROM SCHEMA."Sales"'}
  changed:
    kind: jdbcView
    connection: shop
    database: SCHEMA
    view: v
    sql: SELECT '50%' AS "share", "id" FROM SCHEMA."Sales"
  longest: {kind: jdbcQuery, connection: shop, sql: "SELECT CAST('NUMBER' AS numeric(50,10)) AS n, 1 AS id"}
  as_text:
    kind: jdbcQuery
    connection: shop
    sql: SELECT CAST('NUMBER' AS numeric(50,10)) AS n
    schema: {fields: {name: n, type: string}}
  closed: {kind: jdbcTable, connection: closed, table: t}
"""
ROWS = (
    "SELECT id, item, 1.5 * id AS price, array('a') AS tags, TIMESTAMP'2022-01-01 12:00:00' AS at "
    "FROM VALUES (1, 'one'), (2, 'two') AS t(id, item)"
)
FIRST, SECOND = {"day": "2022-01-01"}, {"day": "2022-01-02"}


@pytest.fixture
def schema(postgres_server: str) -> Iterator[str]:
    name = f"shop_{uuid4().hex}"
    yield name
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.fixture
def project(postgres_server: str, schema: str) -> str:
    url = make_url(postgres_server)
    return PROJECT.replace("URL", f"jdbc:postgresql://{url.host}:{url.port}/{url.database}").replace(
        "SCHEMA", schema
    )


@pytest.fixture
def workspace(project: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    sessions = Started(lambda _: request.getfixturevalue("spark"))
    made = make_workspace(tmp_path, project, sessions=sessions)
    yield made
    made.lake.stop()


def table(workspace: Workspace, name: str) -> JdbcTableRelation:
    found = Relation.named(workspace, name)
    assert isinstance(found, JdbcTableRelation)
    return found


def descriptions(relation: Relation, workspace: Workspace) -> list[str]:
    return [change.description for change in relation.observe(workspace).changes]


@pytest.fixture(params=["python", pytest.param("jvm", marks=pytest.mark.nightly)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How PostgreSQL is reached: by its Python driver, or by Spark's JVM where that isn't installed."""
    if request.param == "jvm":
        monkeypatch.setattr("lakewright.connections.jdbc.engine_url", lambda options: None)
    return str(request.param)


def test_a_table_of_a_database_lives_and_changes(workspace: Workspace, way: str) -> None:
    sales = table(workspace, "sales")
    assert isinstance(sales.dialect(workspace).database, JvmDatabase) == (way == "jvm")
    assert sales.observe(workspace).exists is Answer.NO
    sales.create(workspace)
    sales.create(workspace)
    found = sales.observe(workspace)
    assert (found.exists, found.filled, found.changes) == (Answer.YES, Answer.NO, ())

    def write(query: str, mode: OutputMode, **partition: str) -> int:
        frame = workspace.spark.sql(query)
        return sales.write(workspace, frame, partition=partition, mode=mode).rows

    with pytest.raises(LeaseLost), workspace.lake.checking_commits(lose_lease):
        write(ROWS, OutputMode.OVERWRITE, **FIRST)
    assert sales.observe(workspace).filled is Answer.NO
    assert write(ROWS, OutputMode.OVERWRITE, **FIRST) == 2
    assert write("SELECT 3 AS id, 'thre%' AS item", OutputMode.APPEND, **SECOND) == 1
    expected = [
        ("1", "one", "1.50", "[a]", "2022-01-01 12:00:00", "2022-01-01"),
        ("2", "two", "3.00", "[a]", "2022-01-01 12:00:00", "2022-01-01"),
        ("3", "thre%", None, None, None, "2022-01-02"),
    ]
    columns = ("id", "item", "price", "tags", "at", "day")
    assert rows(sales.read(workspace), *columns) == expected
    assert rows(sales.read(workspace, [SECOND]), "id") == [("3",)]
    assert rows(workspace.relation("found").read(workspace), *columns) == expected
    assert rows(workspace.relation("cheap").read(workspace), "id", "price") == [("1", "1.50")]

    write("SELECT 4 AS id", OutputMode.OVERWRITE, **FIRST)
    assert rows(sales.read(workspace), "id") == [("3",), ("4",)]
    write("SELECT 5 AS id, DATE'2022-01-02' AS day", OutputMode.OVERWRITE_DYNAMIC)
    assert rows(sales.read(workspace), "id") == [("4",), ("5",)]
    both = (
        "SELECT 5 AS id, 'new' AS item, DATE'2022-01-02' AS day UNION ALL SELECT 6, 'six', DATE'2022-01-03'"
    )
    assert write(both, OutputMode.UPDATE) == 2
    assert rows(sales.read(workspace), "id", "item") == [("4", None), ("5", "new"), ("6", "six")]
    with pytest.raises(TargetError, match="have the same key, day=2022-01-03, id=1"):
        write(
            "SELECT 1 AS id, DATE'2022-01-03' AS day UNION ALL SELECT 1, DATE'2022-01-03'", OutputMode.UPDATE
        )
    with pytest.raises(TargetError, match="duplicate key value"):
        write("SELECT 6 AS id, DATE'2022-01-03' AS day", OutputMode.APPEND)
    assert rows(sales.read(workspace), "id") == [("4",), ("5",), ("6",)]

    sales.truncate(workspace, FIRST)
    assert sales.observe(workspace, FIRST).filled is Answer.NO
    assert sales.observe(workspace, SECOND).filled is Answer.YES
    assert names(workspace, sales) == ["Sales"], "nothing is left beside"
    sales.destroy(workspace)
    sales.destroy(workspace)
    assert sales.observe(workspace).exists is Answer.NO


def lose_lease() -> None:
    raise LeaseLost("the lease is lost")


def names(workspace: Workspace, relation: JdbcTableRelation) -> list[str]:
    query = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{relation.database}'"
    return sorted(str(row[0]) for row in relation.dialect(workspace).database.query(query))


def test_a_table_of_a_database_is_migrated_as_policy_and_strategy_say(workspace: Workspace, way: str) -> None:
    sales, wider, strict = (table(workspace, name) for name in ("sales", "wider", "strict"))
    sales.create(workspace)
    database, name = sales.dialect(workspace).database, f'{sales.database}."Sales"'
    database.run([f"INSERT INTO {name} (id, price, day) VALUES (1, 1.5, '2022-01-01'), (2, 3, '2022-01-01')"])
    assert descriptions(wider, workspace) == [
        "rename column price to cost",
        "change column id from int to bigint",
        "change column item from varchar(5) to varchar(20)",
        "change column cost from decimal(10,2) to decimal(12,2)",
        "add column note string",
        "recreate index by_item",
        "create index by_at",
    ]
    with pytest.raises(MigrationError, match="change column id from int to date"):
        table(workspace, "other").migrate(workspace, allow_data_loss=True)
    assert all(isinstance(each, Tolerated) for each in table(workspace, "never").observe(workspace).changes)
    table(workspace, "never").migrate(workspace, allow_data_loss=True)

    wider.migrate(workspace, allow_data_loss=False)
    assert descriptions(wider, workspace) == []
    found = database.query(f"SELECT id::text, cost::text, note FROM {name} ORDER BY id")
    assert found == [("1", "1.50", None), ("2", "3.00", None)]

    assert {"drop column cost", "drop column note", "drop index by_at"} < set(descriptions(strict, workspace))
    with pytest.raises(DataLossError, match="column cost"):
        strict.migrate(workspace, allow_data_loss=False)
    strict.migrate(workspace, allow_data_loss=True)
    assert descriptions(strict, workspace) == []

    other_key = strict.model_copy(update={"primary_key": ("id",)})
    assert descriptions(other_key, workspace) == ["drop the primary key", "set the primary key to id"]
    other_key.migrate(workspace, allow_data_loss=False)
    assert descriptions(other_key, workspace) == []
    relaxed = other_key.model_copy(update={"primary_key": (), "migration_policy": MigrationPolicy.RELAXED})
    assert descriptions(relaxed, workspace) == []
    strict.migrate(workspace, allow_data_loss=False)

    replaced = table(workspace, "replaced")
    losses = [change.loses for change in replaced.observe(workspace).changes]
    assert losses == ["all its rows", None]
    with pytest.raises(DataLossError, match="all its rows"):
        replaced.migrate(workspace, allow_data_loss=False)
    replaced.migrate(workspace, allow_data_loss=True)
    assert [field.name for field in replaced.fields(workspace)] == ["id"]
    assert replaced.observe(workspace).filled is Answer.NO
    assert {change.loses for change in table(workspace, "sales").observe(workspace).changes} == {None}


def test_statements_make_a_table_and_what_rows_lack_is_left_to_the_database(workspace: Workspace) -> None:
    made = table(workspace, "made")
    made.create(workspace)
    made.write(workspace, workspace.spark.sql("SELECT 1 AS id"), partition={}, mode=OutputMode.APPEND)
    assert rows(made.read(workspace), "id", "n") == [("1", "7")]
    with pytest.raises(TargetError, match=r"there is no table .*Sales"):
        workspace.relation("found").read(workspace)


def test_a_table_without_schema_is_created_with_the_columns_of_its_first_rows(workspace: Workspace) -> None:
    relation = table(workspace, "open")
    relation.create(workspace)
    assert relation.observe(workspace).exists is Answer.NO
    first = workspace.spark.sql("SELECT 1 AS id, 'a' AS name, 1.50BD AS price")
    relation.write(workspace, first, partition={}, mode=OutputMode.OVERWRITE)
    wider = workspace.spark.sql("SELECT 2 AS id, 'b' AS name, 'x' AS note")
    done = relation.write(workspace, wider, partition={}, mode=OutputMode.UPDATE)
    assert done.left_out == ("note",)
    assert rows(relation.read(workspace), "id", "name", "price") == [("1", "a", "1.50"), ("2", "b", None)]


def test_numbers_longer_than_any_decimal_are_not_rounded(
    project: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Spark reads numeric(50,10) as decimal(38,0), and rounds."""
    made = make_workspace(tmp_path, project.replace("NUMBER", "2.5"), sessions=same(spark))
    assert rows(made.relation("as_text").read(made), "n") == [("2.5000000000",)]
    failing = pytest.raises(TargetError, match=r"column 'n': the value '2\.5000000000' doesn't fit")
    with failing, translated_failures("while it was read"):
        made.relation("longest").read(made).collect()
    made = make_workspace(tmp_path, project.replace("NUMBER", "12345678901234567890"), sessions=same(spark))
    assert rows(made.relation("longest").read(made), "n", "id") == [("12345678901234567890", "1")]


def test_a_view_of_a_database_is_replaced_when_its_query_changes(workspace: Workspace) -> None:
    table(workspace, "sales").create(workspace)
    view, changed = (Relation.named(workspace, name) for name in ("view", "changed"))
    assert isinstance(view, ManagedRelation)
    assert isinstance(changed, ManagedRelation)
    assert view.observe(workspace).exists is Answer.NO
    view.create(workspace)
    assert descriptions(view, workspace) == []
    assert descriptions(changed, workspace) == ["replace the view's query"]
    changed.migrate(workspace, allow_data_loss=False)
    assert changed.observe(workspace).changes == ()
    assert changed.read(workspace).columns == ["share", "id"]
    changed.destroy(workspace)
    assert view.observe(workspace).exists is Answer.NO


def test_a_database_is_looked_at_without_spark(project: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, project, sessions=no_session)
    assert table(workspace, "sales").observe(workspace).exists is Answer.NO
    table(workspace, "sales").create(workspace)
    assert table(workspace, "sales").observe(workspace, FIRST).filled is Answer.NO
    database = table(workspace, "sales").dialect(workspace).database
    name = f'{table(workspace, "sales").database}."Sales"'
    seen: list[int] = []

    def refuse(changed: Sequence[int]) -> None:
        seen.extend(changed)
        lose_lease()

    with pytest.raises(LeaseLost):
        database.run([f"INSERT INTO {name} (id, day) VALUES (1, '2022-01-01')"], check=refuse)
    assert seen == [1]
    assert table(workspace, "sales").observe(workspace).filled is Answer.NO, "it was taken back"
    table(workspace, "sales").destroy(workspace)
    workspace.lake.stop()


def test_what_a_database_says_is_told_without_the_password(workspace: Workspace, way: str) -> None:
    closed = table(workspace, "closed")
    with pytest.raises(DatabaseUnavailable, match=r"postgresql://127\.0\.0\.1:1/none: ") as raised:
        closed.destroy(workspace)
    observation = closed.observe(workspace)
    assert observation.exists is Answer.UNKNOWN
    for text in (str(raised.value), observation.error, repr(workspace.connection("closed"))):
        assert "very-secret" not in str(text)
    assert "very-secret" in workspace.project.secrets


def test_readers_never_see_a_part_of_a_write(
    workspace: Workspace, postgres_server: str, reading: Callable[[Callable[[], Any]], Any]
) -> None:
    found = table(workspace, "sales")
    found.create(workspace)
    many = "SELECT id, 'x' AS item, DATE'2022-01-01' AS day FROM range(2000) AS t(id)"
    found.write(workspace, workspace.spark.sql(many), partition=FIRST, mode=OutputMode.OVERWRITE)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        query = f'SELECT count(*) FROM {found.database}."Sales"'.encode()

        def look() -> int:
            row = connection.execute(query).fetchone()
            return -1 if row is None else int(row[0])

        with reading(look) as seen:
            for _ in range(2):
                frame = workspace.spark.sql(many)
                found.write(workspace, frame, partition=FIRST, mode=OutputMode.OVERWRITE)
                found.write(workspace, frame, partition={}, mode=OutputMode.OVERWRITE_DYNAMIC)
    assert set(seen) == {2000}


DERBY = """
connections:
  shop: {kind: jdbc, url: "jdbc:derby:memory:NAME;create=true"}
relations:
  sales:
    kind: jdbcTable
    connection: shop
    table: SALES
    primaryKey: ID
    partitions: {name: YEAR, type: int}
    schema: {fields: [{name: ID, type: varchar(10)}, {name: N, type: int}]}
  wider:
    kind: jdbcTable
    connection: shop
    table: SALES
    primaryKey: ID
    schema: {fields: [{name: ID, type: varchar(10)}, {name: N, type: int}, {name: M, type: double}]}
  other: {kind: jdbcTable, connection: shop, table: SALES, schema: {fields: {name: N, type: double}}}
  replaced:
    kind: jdbcTable
    connection: shop
    table: SALES
    migrationPolicy: STRICT
    migrationStrategy: ALTER_REPLACE
    schema: {fields: [{name: ID, type: date}]}
"""


def test_another_database_is_written_and_its_tables_grow(tmp_path: Path, spark: SparkSession) -> None:
    workspace = make_workspace(tmp_path, DERBY.replace("NAME", uuid4().hex), sessions=same(spark))
    sales, wider, other, replaced = (
        table(workspace, name) for name in ("sales", "wider", "other", "replaced")
    )
    assert sales.observe(workspace).exists is Answer.NO
    sales.create(workspace)
    found = sales.observe(workspace)
    assert (found.exists, found.filled, found.changes) == (Answer.YES, Answer.NO, ())
    two = workspace.spark.sql("SELECT 'a' AS ID, 1 AS N UNION ALL SELECT 'b', 2")
    for partition, mode in (("1", OutputMode.OVERWRITE), ("1", OutputMode.OVERWRITE)):
        assert sales.write(workspace, two, partition={"YEAR": partition}, mode=mode).rows == 2
    assert rows(sales.read(workspace), "ID", "N", "YEAR") == [("a", "1", "1"), ("b", "2", "1")]
    with pytest.raises(SpecError, match="cannot be updated"):
        sales.write(workspace, two, partition={"YEAR": "1"}, mode=OutputMode.UPDATE)
    assert descriptions(wider, workspace) == ["add column M double"]
    wider.migrate(workspace, allow_data_loss=False)
    assert descriptions(wider, workspace) == []
    with pytest.raises(MigrationError, match="change column N from int to double"):
        other.migrate(workspace, allow_data_loss=True)
    assert replaced.observe(workspace).after(Phase.CREATE).filled is Answer.NO
    replaced.migrate(workspace, allow_data_loss=True)
    assert [field.type.ddl for field in replaced.fields(workspace)] == ["date"]
    assert replaced.observe(workspace).filled is Answer.NO
    replaced.destroy(workspace)
    assert replaced.observe(workspace).exists is Answer.NO


COMMAND = """
connections: {shop: {kind: jdbc, url: "URL", username: postgres}}
targets:
  role:
    kind: jdbcCommand
    connection: shop
    create:
      condition: SELECT 1 WHERE to_regclass('SCHEMA.t') IS NULL
      sql: CREATE TABLE SCHEMA.t (n integer)
    build:
      condition: SELECT CASE WHEN count(*) = 0 THEN 1 ELSE 0 END FROM SCHEMA.t
      sql: [INSERT INTO SCHEMA.t VALUES (1), INSERT INTO SCHEMA.t VALUES ('no number')]
      transactional: true
    verify: {sql: SELECT 1 FROM SCHEMA.t}
    truncate: {condition: SELECT 'x', sql: DELETE FROM SCHEMA.t}
    destroy: {condition: SELECT 1 FROM nowhere, sql: DROP TABLE SCHEMA.t}
"""


def test_commands_run_where_their_condition_holds(postgres_server: str, schema: str, tmp_path: Path) -> None:
    url = make_url(postgres_server)
    text = COMMAND.replace("URL", f"jdbc:postgresql://{url.host}:{url.port}/{url.database}")
    workspace = make_workspace(tmp_path, text.replace("SCHEMA", schema), sessions=no_session)
    context, target = make_context(workspace), Target.named(workspace, "role")
    assert target.phases() == frozenset(Phase) - {Phase.VALIDATE}

    def answers() -> dict[Phase, Answer]:
        found = target.observe(context)
        return {phase: target.dirtiness(phase, found, context.defaults).verdict for phase in target.phases()}

    always = {Phase.VERIFY: Answer.YES, Phase.TRUNCATE: Answer.UNKNOWN, Phase.DESTROY: Answer.UNKNOWN}
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        assert answers() == {Phase.CREATE: Answer.YES, Phase.BUILD: Answer.UNKNOWN, **always}
        expected = target.observe(context).after(Phase.CREATE)
        assert target.dirtiness(Phase.BUILD, expected, context.defaults).verdict is Answer.UNKNOWN
        target.execute(context, Phase.CREATE)
        assert answers() == {Phase.CREATE: Answer.NO, Phase.BUILD: Answer.YES, **always}
        again = target.execute(context, Phase.CREATE)
        assert again.status is Status.SUCCESS
        assert again.reasons == (Reason(Code.NOTHING_RUN),)
        with pytest.raises(TargetError, match=r"target 'role': .*invalid input syntax"):
            target.execute(context, Phase.BUILD)
        count = connection.execute(f"SELECT count(*) FROM {schema}.t".encode()).fetchone()
        assert count == (0,), "the first statement was taken back"
        target.execute(context, Phase.DESTROY)
        assert answers()[Phase.CREATE] is Answer.YES
    workspace.lake.stop()


def test_tables_of_one_schema_are_created_side_by_side(postgres_server: str, tmp_path: Path) -> None:
    """E2: CREATE SCHEMA IF NOT EXISTS of two transactions at once fails in PostgreSQL."""
    url = make_url(postgres_server)
    schemas = [f"shop_{uuid4().hex}" for _ in range(5)]
    relations = "".join(
        f"  {schema}_{n}: {{kind: jdbcTable, connection: shop, database: {schema}, table: t{n},"
        " schema: {fields: {name: id, type: int}}}\n"
        for schema in schemas
        for n in range(6)
    )
    sections = PROJECT.partition("  closed:")[0] + f"relations:\n{relations}"
    sections = sections.replace("URL", f"jdbc:postgresql://{url.host}:{url.port}/{url.database}")
    workspace = make_workspace(tmp_path, sections, sessions=no_session)
    try:
        with ThreadPoolExecutor(6) as pool:
            for schema in schemas:
                tables = [table(workspace, f"{schema}_{n}") for n in range(6)]
                list(pool.map(lambda each: each.create(workspace), tables))
                assert names(workspace, tables[0]) == [f"t{n}" for n in range(6)]
    finally:
        workspace.lake.stop()
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            for schema in schemas:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
