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
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from lakewright.app import App
from lakewright.lake.paths import is_stored, local_path
from lakewright.manifest.record import Application
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import processed_mark
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.discovery import list_bronze, seconds_to_settle
from lakewright.slices.pending_slices import find_pending
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.targets.context import Context
from lakewright.targets.entity.work import processing_context

COUNTS_SECONDS = 1.0
"""How often the manifest's counts are read, which show that slices were processed."""

UNCHANGED_LOOKS = 6
"""After as many full listings that show nothing new, the items are looked at all the same."""

UNSETTLED_POLL = timedelta(milliseconds=250)
"""How often bronze is listed while a slice in it is still being written."""

MARGIN = 0.005
"""How much later than a slice settles, in seconds, it is looked at."""

LIVELY = timedelta(seconds=5)
"""How long a folder is listed that often after a name appeared in it: a new folder is filled file by file,
which does not change the time of the folder around it."""


@dataclass(slots=True)
class _Look:
    """The last full listing of an entity's bronze.

    Attributes:
        stamp: The time of the folder before it was listed; None if there was no folder.
        again: When to list the whole folder again, by the monotonic clock.
        evidence: What the folder held, and the manifest's counts; the same evidence gives the same mark.
        is_unsettled: Whether a slice is still being written.
        settles: When the next slice that is still being written counts as complete, by the monotonic clock.
        unchanged: How many looks in a row have found the same evidence.
    """

    mark: str
    evidence: object
    is_unsettled: bool
    stamp: int | None = None
    again: float = 0.0
    settles: float = float("inf")
    unchanged: int = 0


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
    _folders: dict[str, SliceFolder] = field(default_factory=dict, init=False)
    _counts: Mapping[tuple[Application, Verdict], int] = field(default_factory=dict, init=False)
    _count_at: float = field(default=0.0, init=False)
    _since: dict[str, tuple[str | None, float]] = field(default_factory=dict, init=False)
    _processed_marks: dict[str, str] = field(default_factory=dict, init=False)

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
        is_busy = any(map(self._is_in_process, trigger.sources))
        return self._quiet(trigger, None if is_busy else self.processed(trigger))

    def processed(self, trigger: Trigger) -> str:
        """Return the mark of what was processed up to now, also while a slice is being processed."""
        for entity in trigger.sources:
            if entity not in self._processed_marks:
                self._processed_marks[entity] = processed_mark(self.app.store, self._application(entity))
        return " ".join(self._processed_marks[entity] for entity in trigger.sources)

    def _quiet(self, trigger: Trigger, mark: str | None) -> str | None:
        """Return a mark that has not changed for `settle`: between two slices of a run no lock is held."""
        now = self.clock()
        before, since = self._since.get(trigger.name, (None, now))
        if mark != before or mark is None:
            since = now
        self._since[trigger.name] = (mark, since)
        return mark if now - since >= trigger.settle.total_seconds() else None

    def begin(self) -> None:
        """Read the manifest's counts, if they were not read a moment ago."""
        now = self.clock()
        if now >= self._count_at:
            self._counts, self._count_at = self.app.store.counts(), now + COUNTS_SECONDS
            self._processed_marks.clear()

    def forget(self, trigger: Trigger) -> None:
        """Look at all that a trigger waits for anew the next time, after one of its runs."""
        self._count_at = 0.0
        for name in trigger.sources:
            self._looks.pop((name, trigger.settle), None)

    def seconds_to_look(self) -> float:
        """Return in how many seconds bronze is to be looked at next; looks that are overdue don't count."""
        now = self.clock()
        waiting = [look.again - now for look in self._looks.values() if look.again > now]
        return min(waiting, default=float("inf"))

    def _is_in_process(self, name: str) -> bool:
        return bool(self._counts.get((self._application(name), Verdict.LOCKED)))

    def _application(self, name: str) -> Application:
        return application_of(self.app.project.name, self.app.project.entity(name))

    def _arrived(self, name: str, trigger: Trigger) -> str:
        bronze = self._bronze(name)
        now, every = self.clock(), trigger.every.total_seconds()
        folder = local_path(bronze.folder)
        if folder is None and not is_stored(bronze.folder):
            return f"listing {int(now / every)}"
        stamp = None if folder is None else _stamp(folder)
        before = self._looks.get((name, trigger.settle))
        if before is not None and before.stamp == stamp and now < before.again:
            return before.mark
        look = self._look(name, trigger, before)
        is_calm = not look.is_unsettled and not _is_lively(stamp, self.app.clock())
        pause = every if is_calm else min(every, UNSETTLED_POLL.total_seconds())
        again = min(now + pause, look.settles + MARGIN)
        self._looks[name, trigger.settle] = replace(look, stamp=stamp, again=again)
        return look.mark

    def _look(self, name: str, trigger: Trigger, before: _Look | None) -> _Look:
        """Return a look at bronze; the items are looked at only if something has changed since the last."""
        listing = list_bronze(self._bronze(name), self.app.lake)
        evidence = (listing, tuple(sorted((str(of), n) for of, n in self._counts.items())))
        if (
            before is not None
            and before.evidence == evidence
            and not before.is_unsettled
            and before.unchanged < UNCHANGED_LOOKS
        ):
            return replace(before, unchanged=before.unchanged + 1)
        mark, is_settled = self._ready(name, trigger.settle)
        left = seconds_to_settle(listing, trigger.settle, self.app.clock())
        settles = float("inf") if left is None else self.clock() + left
        return _Look(mark, evidence=evidence, is_unsettled=not is_settled, settles=settles)

    def _bronze(self, name: str) -> SliceFolder:
        if name not in self._folders:
            entity = self.app.project.entity(name)
            self._folders[name] = entity.places(self.app.lake.settings).slices
        return self._folders[name]

    @cached_property
    def _context(self) -> Context:
        return self.app.context()

    def _ready(self, name: str, settle: timedelta) -> tuple[str, bool]:
        """Return the mark of the slices that `process` would take now, and whether all others are settled."""
        entity = self.app.project.entity(name)
        options = ProcessingOptions(scope=self.app.workspace.scope, settle=settle)
        pending = find_pending(
            processing_context(self._context, entity, options),
            entity,
            is_recorded=False,
            looks_at_log=False,  # it is idle most of the time
        )
        unsettled = pending.deviations.listing.unsettled
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
