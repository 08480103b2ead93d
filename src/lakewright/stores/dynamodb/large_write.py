"""Atomic writes of more rows than one transaction takes.

The rows that decide the outcome, items and documents, go into one transaction. All other changes are saved
before it in parts that no one reads, and the transaction marks them as due. The writer then applies each part
exactly once; if it is interrupted, the next process that uses the table does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from lakewright.errors import UsageError
from lakewright.stores.dynamodb.rows import Row, key_of, row_of, text
from lakewright.stores.dynamodb.table import Change, Refused, Table

MOST_CHANGES = 100
"""Maximum rows of one DynamoDB transaction."""

MOST_BYTES = 3_500_000
"""Maximum bytes of one transaction; DynamoDB allows 4 MB, including its own overhead."""

PART_CHANGES, PART_BYTES = 50, 200_000
"""Maximum changes and bytes of one part, which must fit in a row."""

PENDING = "pending"
"""An item's attribute that names its last write while parts of that write are due."""

DUE = "due"
"""The partition that lists the writes with due parts."""


def write_large(table: Table, changes: Sequence[Change]) -> None:
    """Apply all changes, or none.

    Raises:
        Refused: A row is not as its change expects; nothing was changed.
        UsageError: Too many items and documents change at once.
    """
    name = uuid4().hex
    decisive = [change for change in changes if _is_decisive(change)]
    following = [change for change in changes if not _is_decisive(change)]
    _check_size(decisive, following)
    _check_absent(table, following)
    parts = [_part_row(name, n, part) for n, part in enumerate(_parts(following))]
    table.put_all(parts)
    try:
        table.transact([*(_marked(change, name) for change in decisive), _due(name, decisive)])
    except Refused:
        table.delete_all(map(key_of, parts))
        raise
    finish(table, name)


def finish_all(table: Table) -> None:
    """Apply the due parts of all interrupted writes; usually there are none."""
    for row in table.query(DUE):
        finish(table, row["sk"]["S"])


def finish(table: Table, name: str) -> None:
    """Apply the due parts of a write; several processes may do so at once."""
    for part in table.query(f"part/{name}"):
        gone = Change(
            key_of(part),
            "Delete",
            {
                "Key": row_of(key_of(part)),
                "ConditionExpression": "attribute_exists(pk)",
            },
        )
        _once(table, [*_changes(part), gone])
    _close(table, name)


def _once(table: Table, changes: Sequence[Change]) -> None:
    """Apply changes unless another process has applied them."""
    for _ in table.attempts():
        try:
            table.transact(changes)
            return
        except Refused as refused:
            if refused.keys:
                return


def _close(table: Table, name: str) -> None:
    """Remove the marks of a completed write from its items and from the list."""
    due = table.get([(DUE, name)]).get((DUE, name))
    if due is None:
        return
    for pk, sk in json.loads(due["items"]["S"]):
        unmark = {
            "Key": row_of((pk, sk)),
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
    return Change((DUE, name), "Put", {"Item": row_of((DUE, name), items=text(items))}, len(items))


def _marked(change: Change, name: str) -> Change:
    """Return a change, marked with the write that is due if it changes an item."""
    if not change.key[0].startswith("item/"):
        return change
    marked = {**change.arguments["Item"], PENDING: text(name)}
    return replace(change, arguments={**change.arguments, "Item": marked})


def _check_size(decisive: Sequence[Change], following: Sequence[Change]) -> None:
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


def _check_absent(table: Table, following: Sequence[Change]) -> None:
    """Raise `Refused` if a row exists that must be new."""
    new = [change.key for change in following if "ConditionExpression" in change.arguments]
    present = table.get(new)
    if present:
        raise Refused(frozenset(present))


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
    """Return the row that holds some changes, without their conditions: they have been checked."""
    held = [
        [*change.key, change.kind, {k: v for k, v in change.arguments.items() if k != "ConditionExpression"}]
        for change in changes
    ]
    changed = json.dumps(held, default=lambda value: base64.b64encode(value).decode())
    return row_of((f"part/{name}", f"{number:06d}"), changes=text(changed))


def _changes(row: Row) -> list[Change]:
    held = json.loads(row["changes"]["S"])
    return [Change((pk, sk), kind, _with_bytes(arguments)) for pk, sk, kind, arguments in held]


def _with_bytes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    if "Item" not in arguments:
        return dict(arguments)
    restored = {
        name: {"B": base64.b64decode(value["B"])} if "B" in value else value
        for name, value in arguments["Item"].items()
    }
    return {**arguments, "Item": restored}
