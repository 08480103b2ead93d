"""Connections to databases, before any is reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.projects import make_project, make_workspace

from lakewright.connections.database import Check, DatabaseTable, Index, TableName, accept
from lakewright.connections.jdbc import driver_jars, engine_url
from lakewright.connections.postgres import PostgresDialect, read_type
from lakewright.connections.sql import failure
from lakewright.errors import DatabaseUnavailable, SpecError
from lakewright.relations.jdbc import has_place, staging_name
from lakewright.relations.relation import Relation
from lakewright.spark.conf import SessionSettings, session_conf
from lakewright.spark.jars import POSTGRES_DRIVER
from lakewright.spec.models.fields import Field, PartitionField, parse_type


class Nowhere:
    """A database that nothing may be asked of."""

    def query(self, sql: str, most: int | None = None) -> list[tuple[object, ...]]:
        raise AssertionError(sql)

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        raise AssertionError(statements)

    def close(self) -> None:
        pass


DIALECT = PostgresDialect(Nowhere())


@pytest.mark.parametrize(
    ("url", "more", "expected"),
    [
        ("jdbc:postgresql://db/shop", {}, "postgresql+psycopg:///shop?host=db&port=5432"),
        ("jdbc:postgresql://db:5433/a%20b", {"user": "me"}, "postgresql+psycopg://me@/a b?host=db&port=5433"),
        ("jdbc:postgresql://a,b:1/x", {}, "postgresql+psycopg:///x?host=a%2Cb&port=5432%2C1"),
        ("jdbc:postgresql:shop", {"batchsize": "9"}, "postgresql+psycopg:///shop"),
        (
            "jdbc:postgresql://db/x?ssl=true&currentSchema=s&user=me&password=hush",
            {"password": "won"},
            "postgresql+psycopg://me:***@/x?host=db&options=-csearch_path%3Ds&port=5432&sslmode=require",
        ),
    ],
)
def test_a_url_of_postgres_is_read(url: str, more: dict[str, str], expected: str) -> None:
    found = engine_url({"url": url, "driver": "org.postgresql.Driver", **more})
    assert found is not None
    plain = found.difference_update_query(["application_name", "connect_timeout"])
    assert plain.render_as_string().replace("%20", " ") == expected
    assert found.password == more.get("password")


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("jdbc:mysql://db/shop", {}),
        ("jdbc:postgresql://db/shop?sslfactory=mine", {}),
        ("jdbc:postgresql://db/shop", {"sslkey": "key.pk8"}),
    ],
)
def test_what_only_the_jdbc_driver_knows_is_left_to_it(url: str, more: dict[str, str]) -> None:
    assert engine_url({"url": url, **more}) is None


CONNECTION = "connections: {shop: {kind: jdbc, url: '%s'%s}}"
EMBEDDED = """
relations:
  a:
    kind: jdbcTable
    table: t
    connection: {kind: jdbc, url: "jdbc:postgresql://db/x", password: sesame-open}
"""


@pytest.mark.parametrize(
    ("sections", "jars"),
    [
        (CONNECTION % ("jdbc:postgresql://db/shop", ""), (POSTGRES_DRIVER,)),
        (CONNECTION % ("$where", ", driver: org.postgresql.Driver"), (POSTGRES_DRIVER,)),
        ("environment: [db=jdbc:postgresql:shop]\n" + CONNECTION % ("$db", ""), (POSTGRES_DRIVER,)),
        (CONNECTION % ("jdbc:mysql://db/shop", ""), ()),
        ("config: [spark.jars=/x/postgresql.jar]\n" + CONNECTION % ("jdbc:postgresql:shop", ""), ()),
        (EMBEDDED, (POSTGRES_DRIVER,)),
        ("connections: {web: {settings: {a: b}}}", ()),
    ],
)
def test_a_driver_comes_with_the_connections_that_need_it(
    tmp_path: Path, sections: str, jars: tuple[object, ...]
) -> None:
    assert driver_jars(make_project(tmp_path, sections)) == jars


def test_a_drivers_jar_does_not_touch_the_class_path() -> None:
    settings = SessionSettings(Path("state"), master="local[1]", conf={"spark.jars": "mine.jar"})
    conf = session_conf(settings, jars=[Path("delta.jar")], drivers=[Path("driver.jar")])
    assert conf["spark.driver.extraClassPath"] == "delta.jar"
    assert conf["spark.jars"] == "driver.jar,mine.jar"


def test_a_password_is_a_secret_wherever_it_stands(tmp_path: Path) -> None:
    in_url = make_project(tmp_path, CONNECTION % ("jdbc:postgresql://db/x?user=me&password=in-the-url", ""))
    assert "in-the-url" in in_url.secrets
    workspace = make_workspace(tmp_path, EMBEDDED)
    assert "sesame-open" in workspace.project.secrets
    relation = Relation.named(workspace, "a")
    assert "sesame-open" not in repr(relation) + relation.model_dump_json()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ("relations: {a: {kind: jdbcTable, connection: shop, table: t}}", "there is no connection 'shop'"),
        (CONNECTION % ("x", ", pasword: y"), "unknown key 'pasword'"),
        ("connections: {a: {kind: sftp}}", "kind 'sftp' of connection is not supported"),
        (
            "targets: {a: {kind: jdbcCommand, connection: {kind: jdbc, url: x}}}",
            "an action for at least one phase",
        ),
        (
            "relations: {a: {kind: jdbcQuery, connection: {kind: jdbc, url: x}}}",
            "one of `sql`, `file`",
        ),
    ],
)
def test_what_is_declared_wrong_is_found_when_the_project_is_loaded(
    tmp_path: Path, sections: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        make_project(tmp_path, sections)


def test_a_connection_of_settings_is_no_database(tmp_path: Path) -> None:
    sections = "connections: {web: {}}\nrelations: {a: {kind: jdbcTable, connection: web, table: t}}"
    workspace = make_workspace(tmp_path, sections)
    with pytest.raises(SpecError, match="connection 'web' has kind 'source'"):
        workspace.relation("a").resources(workspace)


@pytest.mark.parametrize(
    "declared",
    [
        *("string", "binary", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp"),
        *("timestamp_ntz", "decimal(10,2)", "varchar(3)", "char(3)", "array<decimal(5,1)>"),
    ],
)
def test_a_type_comes_back_from_postgres_as_it_was_declared(declared: str) -> None:
    written = DIALECT.type_sql(parse_type(declared), "c")
    assert read_type(written).ddl == declared
    assert DIALECT.stored(parse_type("tinyint")).ddl == "smallint"


@pytest.mark.parametrize("declared", ["map<string,int>", "struct<a: int>", "variant"])
def test_a_type_that_postgres_lacks_is_an_error(declared: str) -> None:
    with pytest.raises(SpecError, match="column c: PostgreSQL has no type for"):
        DIALECT.type_sql(parse_type(declared), "c")


def test_whatever_stands_in_names_and_texts_stays_data() -> None:
    table = DatabaseTable(
        columns=(Field(name='a" int); --', type=parse_type("string"), default="it's", collation="C"),),
        primary_key=('a" int); --',),
        indexes=(Index("i", ('a" int); --',), is_unique=True),),
        comment="what's in it",
    )
    assert DIALECT.create(TableName("t", 's".x'), table) == [
        'CREATE TABLE "s"".x"."t" ("a"" int); --" text COLLATE "C" DEFAULT \'it\'\'s\', '
        'PRIMARY KEY ("a"" int); --"))',
        'COMMENT ON TABLE "s"".x"."t" IS \'what\'\'s in it\'',
        'CREATE UNIQUE INDEX "i" ON "s"".x"."t" ("a"" int); --")',
    ]
    parts = [
        PartitionField(name=name, type=parse_type(kind)) for name, kind in (("p", "string"), ("q", "date"))
    ]
    condition = DIALECT.condition(parts, {"p": "o'1", "q": "2022-01-01"})
    assert condition == "\"p\" = 'o''1'::text AND \"q\" = '2022-01-01'::date"


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ("varchar(3)", "varchar(5)", True),
        ("varchar(5)", "varchar(3)", False),
        ("char(3)", "varchar(3)", True),
        ("varchar(3)", "char(3)", False),
        ("varchar(3)", "string", True),
        ("string", "varchar(3)", False),
        ("int", "bigint", True),
    ],
)
def test_lengths_of_texts_count_in_a_database(narrow: str, wide: str, expected: bool) -> None:
    assert has_place(parse_type(narrow), parse_type(wide)) is expected


def test_partitions_that_are_written_at_once_are_staged_apart() -> None:
    table = TableName("t" * 63, "s")
    names = {staging_name(table, {"day": day}) for day in ("1", "2")} | {staging_name(table, {})}
    assert len(names) == 3
    assert all(len(name.name) <= 63 and name.schema == "s" for name in names)


def test_only_what_passes_is_worth_another_try() -> None:
    states = {None: True, "08006": True, "40001": True, "40P01": True, "57P01": True}
    states |= {"28P01": False, "23505": False, "42P01": False}
    for state, passes in states.items():
        assert isinstance(failure("db", state, "said\nso"), DatabaseUnavailable) is passes, state
