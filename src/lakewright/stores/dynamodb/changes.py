"""The row changes of a batch of writes, which one transaction applies.

Items and documents change only if they are still as they were read. The lists by verdict and their counts,
which are derived from them, change in the same transaction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import randbelow

from lakewright.manifest.batch import Batch
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Document, DocumentKey, Seen
from lakewright.stores.dynamodb.rows import (
    Key,
    Row,
    checked,
    document_key,
    document_row,
    item_row,
    key_of,
    marker_row,
    number,
    record_row,
    size_of,
    tally_key,
    text,
    verdict_row,
    verdicts_of,
)
from lakewright.stores.dynamodb.table import Change, if_absent, if_equal

__all__ = ["MARKER", "changes_of", "tally_changes"]

MARKER = "id/"
"""The prefix of the partitions whose rows reserve the ids of records."""

SLOTS = 8
"""Rows that each count is split into: transactions that change the same row conflict."""


def changes_of(batch: Batch, seen: Seen) -> list[Change]:
    """Return the changes of a batch, on the condition that everything is as it was read.

    Raises:
        UsageError: A row would be too large.
    """
    listed: Counter[tuple[Application, Verdict]] = Counter()
    changes: list[Change] = []
    for item in batch.items.values():
        before = seen.items.get(item.item_id)
        changes.append(_item(item, before))
        old, new = verdicts_of(before), verdicts_of(item)
        changes += _listing(item.item_id, old, new)
        listed.update(new - old)
        listed.subtract(old - new)
    changes += _records(batch.records)
    changes += _documents(batch.documents, seen.documents)
    changes += tally_changes(listed)
    return changes


def _item(item: Item, before: Item | None) -> Change:
    return _put(item_row(item), if_equal("sequence", before.sequence) if before else if_absent())


def _listing(
    item_id: str, old: set[tuple[Application, Verdict]], new: set[tuple[Application, Verdict]]
) -> Iterator[Change]:
    for application, verdict in old - new:
        yield _delete(key_of(verdict_row(application, verdict, item_id)))
    for application, verdict in new - old:
        yield _put(verdict_row(application, verdict, item_id))


def _records(records: Sequence[Record]) -> Iterator[Change]:
    for record in records:
        yield _put(record_row(record), if_absent())
        yield _put(marker_row(record), if_absent())


def _documents(
    after: Mapping[DocumentKey, Document | None], before: Mapping[DocumentKey, Document]
) -> Iterator[Change]:
    for key, document in after.items():
        present = before.get(key)
        condition = if_equal("version", present.version) if present else if_absent()
        if document is not None:
            yield _put(document_row(document), condition)
        elif present is not None:
            yield _delete(document_key(*key), condition)


def tally_changes(listed: Mapping[tuple[Application, Verdict], int]) -> Iterable[Change]:
    """Yield the changes that add to the counts of applications' items by verdict."""
    for (application, verdict), change in listed.items():
        if change == 0:
            continue
        key = tally_key(application, verdict, randbelow(SLOTS))
        yield Change(
            key,
            "Update",
            {
                "Key": {"pk": text(key[0]), "sk": text(key[1])},
                "UpdateExpression": "SET #a = :a, #v = :v ADD #n :n",
                "ExpressionAttributeNames": {"#a": "application", "#v": "verdict", "#n": "number"},
                "ExpressionAttributeValues": {
                    ":a": text(json.dumps(application.key)),
                    ":v": text(verdict),
                    ":n": number(change),
                },
            },
            size=500,
        )


def _put(row: Row, condition: Mapping[str, object] | None = None) -> Change:
    arguments = {"Item": checked(row), **(condition or {})}
    return Change(key_of(row), "Put", arguments, size_of(row))


def _delete(key: Key, condition: Mapping[str, object] | None = None) -> Change:
    place = {"pk": text(key[0]), "sk": text(key[1])}
    return Change(key, "Delete", {"Key": place, **(condition or {})})
