"""The inbox: what is due, as the plan says it, and what goes on besides.

What is due is taken from the last look at the lake. The rest is read each time; what that costs does not grow
with the slices that are fine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakewright.due.facts import Kind
from lakewright.due.plan import Plan
from lakewright.manifest.item import Item
from lakewright.manifest.verdict import Verdict
from lakewright.serve.http.faults import fault_of, status_of
from lakewright.serve.page.render import link
from lakewright.slices.discovery import item_id
from lakewright.usecases.due.status import ProjectStatus, project_status
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.entities import Standings, read_standings

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.facts import Subject
    from lakewright.errors import Fault
    from lakewright.serve.page.views import View


MOST = 50
"""The largest number of faults, and of locks, that are read."""

MOST_STEPS = 100
"""The largest number of steps and findings that each part shows."""

MOST_WAITING = 8


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way of all that is due.

    Attributes:
        kind: `project`: a fault of the project's files; `unwritable`: the manifest can only be read;
            `unseen`: the lake could not be looked at.
        triggers: The triggers that start nothing until it is mended.
    """

    kind: str
    fault: Fault
    triggers: tuple[str, ...] = ()


def inbox_view(view: View, look: Look | None = None) -> dict[str, Any]:
    """Return the plan of the last look at the lake, and what goes on."""
    app = view.app
    plan = None if look is None else look.plan
    shown = plan or Plan()
    items = dict(_items_of(app, shown))
    status = project_status(app, shown, most_locked=MOST)
    obstacles = tuple(_obstacles(status, look))
    stuck = tuple(each for each in status.triggers if each.has_failed)
    standings = read_standings(app, with_last_slices=False)
    waiting = [each for each in standings.entities if each.standing.count(Verdict.READY)]
    waiting.sort(key=lambda each: -each.standing.count(Verdict.READY))
    now = app.store.now()
    return {
        "look": look,
        "plan": plan,
        "status": status,
        "obstacles": obstacles,
        "stuck": stuck,
        "asked": shown.asked[:MOST_STEPS],
        "due": shown.ready[:MOST_STEPS],
        "waits": shown.waiting[:MOST_STEPS],
        "findings": shown.findings[:MOST_STEPS],
        "number_asked": len(obstacles) + len(shown.asked) + len(stuck),
        "url_of": lambda subject: _url(app, subject, items),
        "failed_since": {of: each.failed.since for of, each in items.items() if each.failed is not None},
        "waiting": waiting[:MOST_WAITING],
        "more_waiting": len(waiting[MOST_WAITING:]),
        "broken": _broken(standings),
        "commands": [each for each in view.site.commands.all() if each.is_running],
        "now": now,
        "made_at": now,
    }


def _obstacles(status: ProjectStatus, look: Look | None) -> Iterator[Obstacle]:
    for fault in status.faults[:MOST]:
        waiting = tuple(str(each) for each in status.withheld if each.fault == fault)
        yield Obstacle("project", fault, waiting)
    if status.unwritable is not None:
        yield Obstacle("unwritable", status.unwritable)
    if look is not None and look.fault is not None:
        yield Obstacle("unseen", look.fault)


def _items_of(app: App, plan: Plan) -> Iterator[tuple[Subject, Item]]:
    """Yield the items of the slices that a person is asked about, as far as the manifest has them."""
    lake, entities = app.project.lake, app.project.entities
    ids = {
        step.subject: item_id(entities[step.subject.name].places(lake).slices.place(step.subject.part))
        for step in plan.asked[:MOST_STEPS]
        if step.subject.part and step.subject.kind is Kind.ENTITY and step.subject.name in entities
    }
    found = app.store.read(list(ids.values()))
    for subject, each in ids.items():
        if each in found and found[each].sequence:
            yield subject, found[each]


def _url(app: App, subject: Subject, items: Mapping[Subject, Item]) -> str | None:
    """Return the page of what a step is about; None if there is none."""
    if subject in items:
        return link("/item", id=items[subject].item_id)
    name = subject.name
    if subject.kind is Kind.TARGET:
        return link("/lineage", focus=f"target:{name}") if name in app.project.targets else None
    return f"/entities/{quote(name, safe='')}" if name in app.project.entities else None


def _broken(standings: Standings) -> dict[str, int]:
    """Return how many items have failed or are damaged, by verdict."""
    of_all = [*(each.standing for each in standings.entities), *standings.others.values()]
    counts = {each: sum(of.count(each) for of in of_all) for each in (Verdict.FAILED, Verdict.INVALID)}
    return {verdict.value: number for verdict, number in counts.items() if number}


log = logging.getLogger(__name__)

LEAST_PAUSE = 30.0
"""Seconds from the end of a look to the next one."""

SHARE = 0.01
"""The largest share of a processor's time: a look that took long is repeated later."""

PATIENCE = 2.0
"""Seconds that a screen waits for a look after its viewer has changed something."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the lake found.

    Attributes:
        at: When it began.
        plan: What is due; None if the look failed.
        fault: Why it failed.
        app: The project that was looked at.
        changes: What was changed through the page before it.
    """

    at: datetime
    plan: Plan | None
    fault: Fault | None
    app: App
    changes: int


@dataclass(slots=True)
class BackgroundObserver:
    """Keeps the plan that the last look at the lake gave, and looks again when somebody asks and it is old.

    Attributes:
        observe: Looks.
        clock: Returns seconds.
    """

    observe: Callable[[App], Plan] = plan_of_project
    clock: Callable[[], float] = time.monotonic
    _found: Look | None = field(init=False, default=None)
    _tried: tuple[App | None, int] = field(init=False, default=(None, 0))
    _next: float = field(init=False, default=0.0)
    _thread: Thread | None = field(init=False, default=None)
    _lock: Lock = field(init=False, default_factory=Lock)

    def latest(self, app: App, changes: int = 0) -> Look | None:
        """Return the last look at this load of the project; None before the first one.

        After a change through the page, it waits some seconds for a look that was begun after the change.

        Args:
            app: The project: what was found before it was loaded again is not used.
            changes: How often something was changed through the page.
        """
        found = self._found
        self._begin(app, changes)
        for _ in range(2 if changes else 0):  # the look that goes on may have begun before the change
            if found is not None and found.app is app and found.changes == changes:
                break
            self.wait(PATIENCE)
            self._begin(app, changes)
            found = self._found
        return found if found is not None and found.app is app else None

    def wait(self, seconds: float) -> None:
        """Wait for the end of a look that goes on."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _begin(self, app: App, changes: int) -> None:
        """Begin a look if none goes on, and there is none since the last change or the last one is old."""
        with self._lock:
            is_idle = self._thread is None or not self._thread.is_alive()
            is_known = self._tried[0] is app and self._tried[1] == changes
            if is_idle and (not is_known or self.clock() >= self._next):
                self._tried = (app, changes)
                self._thread = Thread(target=self._look, args=(app, changes), name="inbox", daemon=True)
                self._thread.start()

    def _look(self, app: App, changes: int) -> None:
        begun, at = self.clock(), app.clock()
        try:
            self._found = Look(at, self.observe(app), None, app, changes)
        except Exception as error:  # the rest of the inbox does not depend on it
            if status_of(error) == 500:
                log.error("the lake could not be looked at for the inbox", exc_info=error)
            self._found = Look(at, None, fault_of(error), app, changes)
        took = self.clock() - begun
        self._next = self.clock() + max(LEAST_PAUSE, took / SHARE)
