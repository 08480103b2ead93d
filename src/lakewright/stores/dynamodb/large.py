"""Writes of more rows than one transaction takes, still wholly or not at all.

What such a write is decided by, items and documents, goes into one transaction. All that follows from it is
put down before, in parts that nobody looks at, and the transaction marks them as due. They are then carried
out, each exactly once, by the writer or, if it is cut short, by whoever comes next.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from lakewright.errors import UsageError
from lakewright.stores.dynamodb.rows import Row, key_of, text
from lakewright.stores.dynamodb.table import Change, Refused, Table

__all__ = ["MOST_BYTES", "MOST_CHANGES", "PENDING", "finish", "finish_all", "put_down_large"]

MOST_CHANGES = 100
"""Rows that one transaction of DynamoDB takes."""

MOST_BYTES = 3_500_000
"""Bytes of one transaction: DynamoDB takes 4 MB, its own accounting included."""

PART_CHANGES, PART_BYTES = 50, 200_000
"""What one part holds at most; it has to fit a row."""

PENDING = "pending"
"""The attribute of an item whose last write has parts that are still due: the name of that write."""

DUE = "due"
"""The partition that lists writes with parts that are due."""


def put_down_large(table: Table, changes: Sequence[Change]) -> None:
    """Make all changes, or none.

    Raises:
        Refused: A row isn't as its change expects it to be; nothing has changed.
        UsageError: Too many items and documents change at once.
    """
    name = uuid4().hex
    decisive = [change for change in changes if _is_decisive(change)]
    following = [change for change in changes if not _is_decisive(change)]
    _refuse_oversize(decisive, following)
    _refuse_taken(table, following)
    parts = [_part_row(name, n, part) for n, part in enumerate(_parts(following))]
    table.put_all(parts)
    try:
        table.transact([*(_marked(change, name) for change in decisive), _due(name, decisive)])
    except Refused:
        table.delete_all(map(key_of, parts))
        raise
    finish(table, name)


def finish_all(table: Table) -> None:
    """Carry out what is due of writes that were cut short; mostly there are none."""
    for row in table.query(DUE):
        finish(table, row["sk"]["S"])


def finish(table: Table, name: str) -> None:
    """Carry out what is due of a write; several may do so at once."""
    for row in table.query(f"part/{name}"):
        gone = Change(
            key_of(row),
            "Delete",
            {
                "Key": {"pk": row["pk"], "sk": row["sk"]},
                "ConditionExpression": "attribute_exists(pk)",
            },
        )
        _once(table, [*_changes(row), gone])
    _close(table, name)


def _once(table: Table, changes: Sequence[Change]) -> None:
    """Make changes unless somebody else has."""
    for _ in table.attempts():
        try:
            table.transact(changes)
            return
        except Refused as refused:
            if refused.keys:
                return


def _close(table: Table, name: str) -> None:
    """Take the marks off the items of a write that is wholly carried out, and off the list."""
    row = table.get([(DUE, name)]).get((DUE, name))
    if row is None:
        return
    for pk, sk in json.loads(row["items"]["S"]):
        unmark = {
            "Key": {"pk": text(pk), "sk": text(sk)},
            "UpdateExpression": "REMOVE #p",
            "ConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": PENDING},
            "ExpressionAttributeValues": {":p": text(name)},
        }
        _once(table, [Change((pk, sk), "Update", unmark)])
    table.delete_all([(DUE, name)])


def _is_decisive(change: Change) -> bool:
    return change.key[0].startswith(("item/", "document/"))


def _due(name: str, decisive: Sequence[Change]) -> Change:
    items = json.dumps([change.key for change in decisive if change.key[0].startswith("item/")])
    row = {"pk": text(DUE), "sk": text(name), "items": text(items)}
    return Change((DUE, name), "Put", {"Item": row}, len(items))


def _marked(change: Change, name: str) -> Change:
    """Return a change of an item that says what is still due."""
    if not change.key[0].startswith("item/"):
        return change
    row = {**change.arguments["Item"], PENDING: text(name)}
    return replace(change, arguments={**change.arguments, "Item": row})


def _refuse_oversize(decisive: Sequence[Change], following: Sequence[Change]) -> None:
    if len(decisive) >= MOST_CHANGES or sum(change.size for change in decisive) > MOST_BYTES:
        raise UsageError(
            f"{len(decisive)} items and documents can't be written together: "
            f"DynamoDB takes {MOST_CHANGES - 1} of them, and {MOST_BYTES:,} bytes, at once",
            remedy="Do it in smaller steps, or choose another back end for the manifest.",
        )
    largest = max((change.size for change in following), default=0)
    if largest > PART_BYTES:
        raise UsageError(
            f"a record of {largest} bytes can't be written together with so much else; "
            f"{PART_BYTES} bytes is the most",
            remedy="Do it in smaller steps, or choose another back end for the manifest.",
        )


def _refuse_taken(table: Table, following: Sequence[Change]) -> None:
    """Raise where there is a row already that should not be."""
    new = [change.key for change in following if "ConditionExpression" in change.arguments]
    there = table.get(new)
    if there:
        raise Refused(frozenset(there))


def _parts(changes: Sequence[Change]) -> Iterator[list[Change]]:
    part: list[Change] = []
    size = 0
    for change in changes:
        if part and (len(part) == PART_CHANGES or size + change.size > PART_BYTES):
            yield part
            part, size = [], 0
        part.append(change)
        size += change.size
    if part:
        yield part


def _part_row(name: str, number: int, changes: Sequence[Change]) -> Row:
    """Return the row that keeps some changes; that their rows aren't there has been seen to."""
    kept = [
        [*change.key, change.kind, {k: v for k, v in change.arguments.items() if k != "ConditionExpression"}]
        for change in changes
    ]
    return {
        "pk": text(f"part/{name}"),
        "sk": text(f"{number:06d}"),
        "changes": text(json.dumps(kept, default=lambda value: base64.b64encode(value).decode())),
    }


def _changes(row: Row) -> list[Change]:
    kept = json.loads(row["changes"]["S"])
    return [Change((pk, sk), kind, _with_bytes(arguments)) for pk, sk, kind, arguments in kept]


def _with_bytes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    if "Item" not in arguments:
        return dict(arguments)
    row = {
        name: {"B": base64.b64decode(value["B"])} if "B" in value else value
        for name, value in arguments["Item"].items()
    }
    return {**arguments, "Item": row}
