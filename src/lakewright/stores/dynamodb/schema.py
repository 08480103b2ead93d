"""Creation and migration of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from botocore.exceptions import BotoCoreError, ClientError

from lakewright.errors import NotInstalled
from lakewright.stores.dynamodb.errors import code_of, translate
from lakewright.stores.dynamodb.rows import Key, number, text
from lakewright.stores.dynamodb.table import BY_STATE, Change, Refused, Table, if_absent, if_equal

__all__ = ["MIGRATIONS", "migrate"]

VERSION: Key = ("schema", "=")
"""The key of the row that holds the version of the layout."""


def _keep_empty(_table: Table) -> None:
    """Leave a new table empty: the first layout."""


MIGRATIONS: Sequence[Callable[[Table], None]] = (_keep_empty,)
"""Each step takes the rows from one version of the layout to the next, and may be repeated."""


def migrate(table: Table) -> None:
    """Create the table if it does not exist, and migrate it to the current layout.

    The version is written last, and only over the one before it, so that an interrupted migration is
    repeated.

    Raises:
        NotInstalled: A newer version of Lakewright wrote the table.
    """
    present, wanted = _version(table), len(MIGRATIONS)
    if present > wanted:
        raise NotInstalled(
            f"{table.where} has schema version {present}, this Lakewright knows versions up to {wanted}",
            remedy="Install the version of Lakewright that last wrote it, or a newer one.",
        )
    for version in range(present, wanted):
        MIGRATIONS[version](table)
        try:
            table.transact([_stamp(version)])
        except Refused:
            return migrate(table)  # another process migrated it first
    return None


def _version(table: Table) -> int:
    key = {"pk": text(VERSION[0]), "sk": text(VERSION[1])}
    try:
        row = table.raw("get_item", TableName=table.name, Key=key, ConsistentRead=True).get("Item")
    except (BotoCoreError, ClientError) as error:
        if code_of(error) != "ResourceNotFoundException":
            raise translate(error, table.where) from error
        _create(table)
        return 0
    return int(row["version"]["N"]) if row else 0


def _stamp(seen: int) -> Change:
    row = {"pk": text(VERSION[0]), "sk": text(VERSION[1]), "version": number(seen + 1)}
    condition = if_equal("version", seen) if seen else if_absent()
    return Change(VERSION, "Put", {"Item": row, **condition})


def _create(table: Table) -> None:
    def ordered(partition: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ]

    try:
        table.raw(
            "create_table",
            TableName=table.name,
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "listed")
            ],
            KeySchema=ordered("pk"),
            BillingMode="PAY_PER_REQUEST",
            GlobalSecondaryIndexes=[
                {
                    "IndexName": BY_STATE,
                    "KeySchema": ordered("listed"),
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["item"]},
                }
            ],
        )
    except (BotoCoreError, ClientError) as error:
        if code_of(error) != "ResourceInUseException":  # another process is creating it
            raise translate(error, table.where) from error
    for _ in table.attempts():
        if table.ask("describe_table", TableName=table.name)["Table"]["TableStatus"] == "ACTIVE":
            return
