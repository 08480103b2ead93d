"""The tables of a manifest in a SQL database, and their migrations.

`records` and `documents` hold all primary data. The other tables are derived from the records and written in
the same transaction, so that an index answers every query. Triggers list in `edited` the items whose records
were changed by hand, not by Lakewright.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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

from lakewright.errors import NotInstalled

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
    Column("sequence", Integer, nullable=False),
    Column("state", KEY),
    Column("fold", Text, nullable=False),
    Column("standing", KEY),
    Column("arrival", KEY),
)
Index("lakewright_items_by_state", items.c.state, items.c.item_id)
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

edited = Table("lakewright_suspects", metadata, Column("item_id", KEY, primary_key=True))

schema = Table("lakewright_schema", metadata, Column("version", Integer, nullable=False))

# Lakewright writes the item before its record, so a record with a higher sequence than its item is an edit.
_TRIGGERS: Mapping[str, Sequence[str]] = {
    "sqlite": (
        """
        CREATE TRIGGER lakewright_insert AFTER INSERT ON lakewright_records WHEN NOT EXISTS (
            SELECT 1 FROM lakewright_items WHERE item_id = NEW.item_id AND sequence >= NEW.sequence)
        BEGIN INSERT OR IGNORE INTO lakewright_suspects (item_id) VALUES (NEW.item_id); END
        """,
        """
        CREATE TRIGGER lakewright_update AFTER UPDATE ON lakewright_records
        BEGIN INSERT OR IGNORE INTO lakewright_suspects (item_id) VALUES (OLD.item_id), (NEW.item_id); END
        """,
        """
        CREATE TRIGGER lakewright_delete AFTER DELETE ON lakewright_records
        BEGIN INSERT OR IGNORE INTO lakewright_suspects (item_id) VALUES (OLD.item_id); END
        """,
    ),
    "postgresql": (
        """
        CREATE FUNCTION lakewright_suspect() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP IN ('UPDATE', 'DELETE') THEN
                INSERT INTO lakewright_suspects (item_id) VALUES (OLD.item_id) ON CONFLICT DO NOTHING;
            END IF;
            IF TG_OP = 'UPDATE' OR (TG_OP = 'INSERT' AND NOT EXISTS (
                SELECT 1 FROM lakewright_items WHERE item_id = NEW.item_id AND sequence >= NEW.sequence))
            THEN
                INSERT INTO lakewright_suspects (item_id) VALUES (NEW.item_id) ON CONFLICT DO NOTHING;
            END IF;
            RETURN NULL;
        END $$
        """,
        """
        CREATE TRIGGER lakewright_suspect AFTER INSERT OR UPDATE OR DELETE ON lakewright_records
        FOR EACH ROW EXECUTE FUNCTION lakewright_suspect()
        """,
    ),
}


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    for statement in _TRIGGERS[connection.dialect.name]:
        connection.execute(text(statement))


def _list_by_standing(connection: Connection) -> None:
    """List items by their standing instead of by each application's verdict.

    The items are folded again from their records, as after an edit.
    """
    columns = {column["name"] for column in inspect(connection).get_columns(items.name)}
    if items.c.standing.name in columns:
        return  # created just now
    for name in ("lakewright_verdicts", "lakewright_tallies", items.name):
        connection.execute(text(f"DROP TABLE {name}"))
    metadata.create_all(connection, tables=[items, standings])
    seen = select(records.c.item_id).distinct().where(records.c.item_id.not_in(select(edited.c.item_id)))
    connection.execute(edited.insert().from_select(["item_id"], seen))


MIGRATIONS: Sequence[Callable[[Connection], None]] = (_create, _list_by_standing)
"""Each step takes a database from one version of the schema to the next; the first step creates it."""


def is_created(connection: Connection) -> bool:
    """Return whether a database has a manifest's schema, of any version."""
    return inspect(connection).has_table(schema.name)


def is_current(connection: Connection) -> bool:
    """Return whether a database has the current version of the schema."""
    return _version_of(connection) == len(MIGRATIONS)


def _version_of(connection: Connection) -> int:
    if not is_created(connection):
        return 0
    version: int = connection.execute(select(schema.c.version)).scalar_one()
    return version


def migrate(connection: Connection, where: str) -> None:
    """Migrate a database to the current schema, within the connection's transaction.

    Raises:
        NotInstalled: A newer version of Lakewright wrote the database.
    """
    present, wanted = _version_of(connection), len(MIGRATIONS)
    if present > wanted:
        raise NotInstalled(
            f"{where} has schema version {present}, this Lakewright knows versions up to {wanted}",
            remedy="Install the version of Lakewright that last wrote it, or a newer one.",
        )
    for step in MIGRATIONS[present:]:
        step(connection)
    if present == 0:
        connection.execute(schema.insert().values(version=wanted))
    elif present < wanted:
        connection.execute(schema.update().values(version=wanted))
