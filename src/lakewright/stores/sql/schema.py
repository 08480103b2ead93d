"""The tables of a manifest in a SQL database.

`records` and `documents` hold all primary data. The other tables are derived from the records and written in
the same transaction, so that an index answers every query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
    text,
)

metadata = MetaData()

KEY = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by code point, as it does in SQLite and Python."""

records = Table(
    "lakewright_records",
    metadata,
    Column("item_id", KEY, primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("record_id", KEY, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("application", Text, nullable=False),
    Column("application_version", Text, nullable=False),
    Column("instance_id", Text),
    Column("author", Text, nullable=False),
    Column("author_version", Text, nullable=False),
    Column("manifest_version", Text, nullable=False),
    Column("run_id", Text),
    Column("previous_record_id", Text),
    Column("timestamp", Text, nullable=False),
    Column("payload", Text),
)

items = Table(
    "lakewright_items",
    metadata,
    Column("item_id", KEY, primary_key=True),
    Column("fold", Text, nullable=False),
    Column("standing", KEY),
    Column("arrival", KEY),
)
Index("lakewright_items_by_standing", items.c.standing, items.c.item_id)
Index("lakewright_items_by_arrival", items.c.standing, items.c.arrival, items.c.item_id)

standings = Table(
    "lakewright_standings",
    metadata,
    Column("standing", KEY, primary_key=True),
    Column("described", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

documents = Table(
    "lakewright_documents",
    metadata,
    Column("kind", KEY, primary_key=True),
    Column("key", KEY, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("value", Text, nullable=False),
)

schema = Table("lakewright_schema", metadata, Column("version", Integer, nullable=False))

VERSION = 3
"""The version of the schema. From an older one, the derived tables are made again."""

# Earlier versions also listed the items whose records were changed by hand, by triggers.
_FORMER: Mapping[str, Sequence[str]] = {
    "sqlite": [f"DROP TRIGGER IF EXISTS lakewright_{event}" for event in ("insert", "update", "delete")],
    "postgresql": ["DROP FUNCTION IF EXISTS lakewright_suspect() CASCADE"],
}


def is_created(connection: Connection) -> bool:
    """Return whether a database has a manifest's schema, of any version."""
    return inspect(connection).has_table(schema.name)


def version_of(connection: Connection) -> int:
    """Return the version of a database's schema; 0 if it has none."""
    if not is_created(connection):
        return 0
    version: int = connection.execute(select(schema.c.version)).scalar_one()
    return version


def create_tables(connection: Connection) -> None:
    """Create the tables that are missing; the derived ones are created anew, without rows."""
    dropped = (f"DROP TABLE IF EXISTS lakewright_{name}" for name in _DERIVED)
    for statement in (*_FORMER[connection.dialect.name], *dropped):
        connection.execute(text(statement))
    metadata.create_all(connection)


_DERIVED = ("items", "standings", "verdicts", "tallies", "suspects")
"""The derived tables of all versions."""
