"""How the table comes to be, and which version of its layout it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from botocore.exceptions import BotoCoreError, ClientError

from lakewright.errors import NotInstalled
from lakewright.stores.dynamodb.faults import code_of, translate
from lakewright.stores.dynamodb.rows import Key, number, text
from lakewright.stores.dynamodb.table import BY_STATE, Change, Refused, Table, if_absent, if_equal

__all__ = ["MIGRATIONS", "migrate"]

VERSION: Key = ("schema", "=")
"""Where the version lies."""


def _make_nothing(_table: Table) -> None:
    """Leave a new table empty: that is the first layout."""


MIGRATIONS: Sequence[Callable[[Table], None]] = (_make_nothing,)
"""What takes the rows from one version of the layout to the next; each may be done twice without harm."""


def migrate(table: Table) -> None:
    """Make the table where there is none, and bring it to this layout.

    The version is written last and only by who finds the one before, so that a migration that was cut short
    is done again.

    Raises:
        NotInstalled: The table is of a newer version than this one of Lakewright.
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
            return migrate(table)  # another process was quicker
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
        if code_of(error) != "ResourceInUseException":  # another process makes it just now
            raise translate(error, table.where) from error
    for _ in table.attempts():
        if table.ask("describe_table", TableName=table.name)["Table"]["TableStatus"] == "ACTIVE":
            return
