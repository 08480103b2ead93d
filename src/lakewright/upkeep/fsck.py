"""Checking a store's derived data against its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from lakewright.manifest.replay import replay
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Query, Store
from lakewright.manifest.verdict import Verdict


def fsck(store: Store) -> Iterator[Damage]:
    """Yield the damage in a store: illegal records, and derived data that does not match the records."""
    listed = store.select(Query())
    answer = next(listed, None)
    tally: Counter[Standing] = Counter()
    for item_id, records in groupby(store.history(), key=lambda record: record.item_id):
        item, damages = replay(item_id, records)
        yield from damages
        tally[standing_of(item)] += 1
        while answer is not None and answer.item_id < item_id:
            yield Damage(answer.item_id, None, "it is listed, but has no records")
            answer = next(listed, None)
        if answer is None or answer.item_id != item_id:
            yield Damage(item_id, None, "it has records, but isn't listed")
            continue
        if answer != item:
            yield Damage(item_id, None, "it is listed in another state than its records give")
        answer = next(listed, None)
    for left_over in [] if answer is None else [answer, *listed]:
        yield Damage(left_over.item_id, None, "it is listed, but has no records")
    yield from _miscounted(store, tally)


def _miscounted(store: Store, tally: Mapping[Standing, int]) -> Iterator[Damage]:
    """Yield the differences between the standings of all items and the store's counts and lists."""
    if dict(store.standings()) != tally:
        yield Damage("*", None, "the counts by verdict differ from the items")
    for verdict in Verdict:
        query = Query(verdicts=frozenset({verdict}))
        expected = sum(number for standing, number in tally.items() if query.admits(standing))
        listed = sum(1 for _ in store.select(query))
        if listed != expected:
            yield Damage("*", None, f"items listed as {verdict}: {listed} instead of {expected}")
