"""What triggers on events wait for: slices that are ready in bronze, and slices that were processed.

Looking starts no Spark. A look at bronze is cheap while nothing has changed: between two full listings only
the time of the folder is read, which changes as soon as a name appears in it. Bronze that only Hadoop can
list is not looked at; the command that is started at each full listing looks itself.

Source: the rules of the server, "Triggers".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from lakewright.app import App
from lakewright.lake.object_storage import is_s3
from lakewright.lake.paths import local_path
from lakewright.manifest.commit_counter import COUNTER
from lakewright.manifest.item import Verdict
from lakewright.manifest.record import Application
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.pending import find_pending
from lakewright.slices.recover_from_log import counter_of
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.targets.entity.work import processing_context

__all__ = ["Observer"]

UNSETTLED_POLL = timedelta(milliseconds=250)
"""How often bronze is listed while a slice in it is still being written."""

LIVELY = timedelta(seconds=5)
"""How long a folder is listed that often after a name appeared in it: a new folder is filled file by file,
which does not change the time of the folder around it."""


@dataclass(slots=True)
class _Look:
    """The last full listing of an entity's bronze.

    Attributes:
        stamp: The time of the folder before it was listed; None if there was no folder.
        again: When to list the whole folder again, by the monotonic clock.
    """

    mark: str
    stamp: int | None
    again: float


@dataclass
class Observer:
    """Looks at what a project's triggers wait for. Nothing is lost if it is made anew.

    Attributes:
        app: The project. Its Spark session is not used.
        clock: Returns seconds that only grow.
    """

    app: App
    clock: Callable[[], float] = time.monotonic
    _looks: dict[tuple[str, timedelta], _Look] = field(default_factory=dict, init=False)

    def mark(self, trigger: Trigger) -> str | None:
        """Return what there is to do for a trigger: equal marks are the same work, empty is none.

        Returns:
            None if there is nothing to be said at this moment, because a slice is being processed.

        Raises:
            LakewrightError: Bronze or the manifest can't be read.
        """
        if trigger.on is TriggerEvent.ARRIVAL:
            marks = [self._arrived(entity, trigger) for entity in trigger.sources]
            return "" if not any(marks) else _digest(*marks)
        found = [self._processed(entity) for entity in trigger.sources]
        return None if any(each is None for each in found) else " ".join(each or "" for each in found)

    def begin(self) -> None:
        """Forget the manifest's counts, which one round of looks shares."""
        self.__dict__.pop("_counts", None)

    def forget(self, trigger: Trigger) -> None:
        """Look at all that a trigger waits for anew the next time, after one of its runs."""
        for name in trigger.sources:
            self._looks.pop((name, trigger.settle), None)

    @cached_property
    def _counts(self) -> Mapping[tuple[Application, Verdict], int]:
        return self.app.store.counts()

    def _processed(self, name: str) -> str | None:
        """Return how many slices of an entity were processed, and the number of its table's last commit.

        The number tells slices that were processed again.
        """
        entity = self.app.project.entity(name)
        application = application_of(self.app.project.name, entity)
        if self._counts.get((application, Verdict.LOCKED)):
            return None
        silver = entity.places(self.app.lake.settings).silver
        counter = self.app.store.document(COUNTER, counter_of(silver))
        last = 0 if counter is None else counter.value["last"]
        return f"{self._counts.get((application, Verdict.PROCESSED), 0)}/{last}"

    def _arrived(self, name: str, trigger: Trigger) -> str:
        entity = self.app.project.entity(name)
        bronze = entity.places(self.app.lake.settings).bronze
        now, every = self.clock(), trigger.every.total_seconds()
        folder = local_path(bronze)
        if folder is None and not is_s3(bronze):
            return f"listing {int(now / every)}"
        stamp = None if folder is None else _stamp(folder)
        before = self._looks.get((name, trigger.settle))
        if before is not None and before.stamp == stamp and now < before.again:
            return before.mark
        mark, is_settled = self._ready(name, trigger.settle)
        is_calm = is_settled and not _is_lively(stamp, self.app.clock())
        pause = every if is_calm else min(every, UNSETTLED_POLL.total_seconds())
        self._looks[name, trigger.settle] = _Look(mark, stamp, now + pause)
        return mark

    def _ready(self, name: str, settle: timedelta) -> tuple[str, bool]:
        """Return the mark of the slices that `process` would take now, and whether all others are settled."""
        entity = self.app.project.entity(name)
        context = self.app.context()(self.app.workspace)
        options = ProcessingOptions(scope=self.app.workspace.scope, settle=settle)
        pending, _ = find_pending(processing_context(context, entity, options), entity, is_recorded=False)
        unsettled = pending.deviations.listing.unsettled if pending.deviations else frozenset()
        ready = [f"{item.item_id} {item.revision} {item.fingerprint}" for item in pending.ready]
        return (_digest(*ready) if ready else ""), not unsettled


def _stamp(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


def _is_lively(stamp: int | None, now: datetime) -> bool:
    return stamp is not None and 0 <= now.timestamp() - stamp / 1e9 < LIVELY.total_seconds()


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
