"""PostgreSQL: its SQL, types and catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial

from lakewright.connections.database import DatabaseTable, Dialect, Index, Statements, TableName
from lakewright.errors import SpecError
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, Type
from lakewright.spec.models.fields import Field

_TYPES: Mapping[str, str] = {
    "string": "text",
    "binary": "bytea",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_SCHEMA_LOCK = 6_417_001
"""Number of the advisory lock that transactions hold while they create a schema."""

_SCALARS = {written: name for name, written in _TYPES.items() if name != "tinyint"}
_WITH_NUMBERS = re.compile(r"(?P<name>[a-z ]+?)\((?P<numbers>[\d,]+)\)(?P<rest>[a-z ]*)")

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 1 ELSE 0 END,
       col_description(c.oid, a.attnum), c.relkind::text, obj_description(c.oid, 'pg_class')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass({table}) ORDER BY a.attnum
"""
_INDEXES = """
SELECT i.relname, CASE WHEN x.indisprimary THEN 1 ELSE 0 END, CASE WHEN x.indisunique THEN 1 ELSE 0 END,
       k.conname,
       (SELECT json_agg(a.attname ORDER BY n.place)::text
        FROM unnest(x.indkey::int[]) WITH ORDINALITY n(attnum, place)
        JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = n.attnum)
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x')
WHERE x.indrelid = to_regclass({table}) ORDER BY i.relname
"""


class PostgresDialect(Dialect):
    """PostgreSQL, where DDL is part of transactions."""

    def type_sql(self, declared: Type, name: str = "") -> str:
        """Return the type of a column of this name.

        Raises:
            SpecError: PostgreSQL has no type for the declared one.
        """
        if isinstance(declared, Array):
            return f"{self.type_sql(declared.element, name)}[]"
        if isinstance(declared, Decimal):
            return f"numeric({declared.precision},{declared.scale})"
        if isinstance(declared, Chars):
            return f"{'character' if declared.is_fixed else 'character varying'}({declared.length})"
        if isinstance(declared, (MapOf, Struct)) or declared.name not in _TYPES:
            raise SpecError.of(
                f"column {name}: PostgreSQL has no type for {declared.ddl}",
                remedy="Write it as text, with to_json, or remove it.",
            )
        return _TYPES[declared.name]

    def stored(self, declared: Type) -> Type:
        """Return the type that the database reports for a declared type."""
        return read_type(self.type_sql(declared))

    def literal(self, text: str, declared: Type) -> str:
        """Return a value as a literal of a type."""
        return f"{self.text(text)}::{self.type_sql(declared)}"

    def has_rows(self, table: TableName, condition: str | None) -> bool:
        """Return whether any row satisfies the condition."""
        where = f" WHERE {condition}" if condition else ""
        return bool(self.database.query(f"SELECT 1 FROM {self.table(table)}{where} LIMIT 1"))

    def update_from(
        self, table: TableName, staged: TableName, columns: Sequence[str], key: Sequence[str]
    ) -> str:
        """Return the statement that updates rows from staged rows with the same key."""
        lower = {name.lower() for name in key}
        others = [name for name in columns if name.lower() not in lower] or list(key)
        changes = ", ".join(f"{self.name(each)} = staged.{self.name(each)}" for each in others)
        return (
            f"UPDATE {self.table(table)} present SET {changes} "
            f"FROM {self.table(staged)} staged WHERE {self.same(key)}"
        )

    def stage_sql(self, table: TableName, staged: TableName, fields: Sequence[Field]) -> list[str]:
        """Return the statements that create an empty table with these columns of another table."""
        name, listed = self.table(staged), self.names(field.name for field in fields)
        source = self.table(table)
        return [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE UNLOGGED TABLE {name} AS SELECT {listed} FROM {source} WITH NO DATA",
        ]

    def find(self, table: TableName) -> DatabaseTable | None:
        """Return the table or view as it exists, or None."""
        name = self.text(self.table(table))
        rows = self.database.query(_COLUMNS.format(table=name))
        if not rows:
            return None
        columns = tuple(
            Field(name=column, type=read_type(written), nullable=not int(is_set), description=comment)
            for column, written, is_set, comment, _, _ in rows
        )
        is_view = rows[0][4] in ("v", "m")
        indexes = [] if is_view else self.database.query(_INDEXES.format(table=name))
        key = next((row for row in indexes if int(row[1])), None)
        return DatabaseTable(
            columns,
            primary_key=tuple(json.loads(key[4])) if key else (),
            key_name=key[3] if key else None,
            indexes=tuple(_index(row) for row in indexes if not int(row[1])),
            comment=rows[0][5],
            is_view=is_view,
        )

    def make_schema(self, table: TableName) -> list[str]:
        """Return the statements that create a table's schema if it is missing."""
        if not table.schema:
            return []
        # Two transactions that create a schema at once would both find it missing, and the second one fails.
        return [
            f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})",
            # Reading the catalog makes this connection forget that the schema was missing before it waited.
            "SELECT 1 FROM pg_namespace LIMIT 1",
            f"CREATE SCHEMA IF NOT EXISTS {self.name(table.schema)}",
        ]

    def create(self, table: TableName, wanted: DatabaseTable) -> list[str]:
        """Return the statements that create a table with its comments and indexes."""
        name = self.table(table)
        columns = [self._column(field) for field in wanted.columns]
        key = [f"PRIMARY KEY ({self.names(wanted.primary_key)})"] if wanted.primary_key else []
        comment = [f"COMMENT ON TABLE {name} IS {self.text(wanted.comment)}"] if wanted.comment else []
        described = [self.comment_column(table, field) for field in wanted.columns if field.description]
        indexes = [self.create_index(table, index) for index in wanted.indexes or ()]
        return [
            f"CREATE TABLE {name} ({', '.join([*columns, *key])})",
            *comment,
            *described,
            *indexes,
        ]

    def _column(self, field: Field) -> str:
        collation = f" COLLATE {self.name(field.collation)}" if field.collation else ""
        default = f" DEFAULT {self.text(field.default)}" if field.default is not None else ""
        not_null = "" if field.nullable else " NOT NULL"
        return (
            f"{self.name(field.name)} {self.type_sql(field.type, field.name)}{collation}{default}{not_null}"
        )

    def _alter(self, table: TableName, what: str) -> str:
        return f"ALTER TABLE {self.table(table)} {what}"

    def statements(self, table: TableName) -> Statements:
        """Return the statements that alter the columns of a table.

        A NOT NULL column needs a value for existing rows; nulls are forbidden only where there are none.
        """

        def alter(field: Field, what: str) -> str:
            return self._alter(table, f"ALTER COLUMN {self.name(field.name)} {what}")

        def add(field: Field) -> str | None:
            is_possible = field.nullable or field.default is not None
            return self._alter(table, f"ADD COLUMN {self._column(field)}") if is_possible else None

        return Statements(
            rename=lambda old, new: self._alter(table, f"RENAME COLUMN {self.name(old)} TO {self.name(new)}"),
            drop=lambda name: self._alter(table, f"DROP COLUMN {self.name(name)}"),
            add=add,
            retype=lambda _, field: alter(field, f"TYPE {self.type_sql(field.type, field.name)}"),
            set_nullable=lambda field: alter(field, f"{'DROP' if field.nullable else 'SET'} NOT NULL"),
            comment=partial(self.comment_column, table),
            stored=self.stored,
        )

    def comment_column(self, table: TableName, field: Field) -> str:
        """Return the statement that sets a column's comment."""
        column = f"{self.table(table)}.{self.name(field.name)}"
        return f"COMMENT ON COLUMN {column} IS {self.text(field.description or '')}"

    def drop_index(self, table: TableName, name: str) -> str:
        """Return the statement that drops an index; it may already be gone together with a column."""
        return f"DROP INDEX IF EXISTS {self.table(table.beside(name))}"

    def replace_key(self, table: TableName, key_name: str | None, columns: Sequence[str]) -> list[str]:
        """Return the statements that replace a table's primary key."""
        drop = [self._alter(table, f"DROP CONSTRAINT {self.name(key_name)}")] if key_name else []
        add = [self._alter(table, f"ADD PRIMARY KEY ({self.names(columns)})")] if columns else []
        return [*drop, *add]


def _index(row: tuple[str, ...]) -> Index:
    name, _, is_unique, constraint, columns = row
    return Index(name, tuple(json.loads(columns or "[]")), bool(int(is_unique)), constraint is not None)


def read_type(written: str) -> Type:
    """Return the type for a PostgreSQL type name; types that Spark reads as text become text.

    Example:
        >>> [read_type(each).ddl for each in ("numeric(10,2)", "character varying(3)", "integer[]", "uuid")]
        ['decimal(10,2)', 'varchar(3)', 'array<int>', 'string']
    """
    if written.endswith("[]"):
        return Array(read_type(written.removesuffix("[]")))
    numbers: list[int] = []
    if found := _WITH_NUMBERS.fullmatch(written):
        numbers = [int(each) for each in found["numbers"].split(",")]
        written = f"{found['name']}{found['rest']}"
    if written == "numeric":
        return Decimal(*numbers) if len(numbers) == 2 and numbers[0] <= 38 else Decimal()
    if written in ("character varying", "character") and numbers:
        return Chars(numbers[0], written == "character")
    return Scalar(_SCALARS.get(written, "string"))
