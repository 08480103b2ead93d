"""Watch the manifest: new records, and locks that become stale."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.app import App
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import Record, State
from lakewright.manifest.record_feed import RecordFeed
from lakewright.manifest.store import Query
from lakewright.usecases.items import chosen_application

__all__ = ["ManifestWatch"]


class ManifestWatch:
    """Watches the manifest for new records and stale locks.

    Args:
        app: The project.
        states: Only records of these states. Without PROCESSING, stale locks are left out.
        application: Only records for this application: `name:instance`, or `name`.
        entity: Only slices of this entity.

    Raises:
        UsageError, SpecError: There is no such application or entity.
    """

    def __init__(
        self,
        app: App,
        states: frozenset[State] = frozenset(State),
        *,
        application: str | None = None,
        entity: str | None = None,
    ) -> None:
        self._app = app
        self._states = states
        self._application = chosen_application(app, application, entity)
        self._feed = RecordFeed(app.store, self._application)
        self._stale: frozenset[str] = frozenset()

    def news(self) -> Iterator[Record | Lock]:
        """Yield the records added since the last call, then each lock that has become stale, once."""
        for record in self._feed.new_records():
            if record.state in self._states:
                yield record
        if State.PROCESSING in self._states:
            yield from self._newly_stale()

    def _newly_stale(self) -> Iterator[Lock]:
        query = Query(application=self._application, verdicts=frozenset({Verdict.LOCKED}))
        stale = {
            lock.processing.record_id: lock
            for lock in self._app.ledger.stale_locks(self._app.store.select(query))
        }
        known, self._stale = self._stale, frozenset(stale)
        yield from (lock for record_id, lock in stale.items() if record_id not in known)
