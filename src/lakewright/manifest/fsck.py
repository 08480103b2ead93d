"""Checking a store's derived data against its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from lakewright.manifest.item import Item
from lakewright.manifest.record import Application
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage, Query, Store
from lakewright.manifest.verdict import Verdict


def fsck(store: Store) -> Iterator[Damage]:
    """Yield the damage in a store: illegal records, and derived data that does not match the records."""
    listed = store.select(Query())
    answer = next(listed, None)
    tally = _Tally()
    for item_id, records in groupby(store.history(), key=lambda record: record.item_id):
        item, damages = replay(item_id, records)
        yield from damages
        tally.add(item)
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
    yield from tally.compare(store)


@dataclass(frozen=True, slots=True)
class _Tally:
    """How many items have each verdict, by application and overall."""

    by_application: Counter[tuple[Application, Verdict]] = field(default_factory=Counter)
    by_verdict: Counter[Verdict] = field(default_factory=Counter)

    def add(self, item: Item) -> None:
        """Count an item."""
        verdicts = item.verdicts()
        self.by_application.update((Application.named(*a.key), verdict) for a, verdict in verdicts.items())
        self.by_verdict.update(set(verdicts.values()))

    def compare(self, store: Store) -> Iterator[Damage]:
        """Yield the differences from the store's counts and lists."""
        if dict(store.counts()) != self.by_application:
            yield Damage("*", None, "the counts by verdict differ from the items")
        for verdict in Verdict:
            listed = sum(1 for _ in store.select(Query(verdicts=frozenset({verdict}))))
            if listed != self.by_verdict[verdict]:
                yield Damage(
                    "*", None, f"items listed as {verdict}: {listed} instead of {self.by_verdict[verdict]}"
                )
