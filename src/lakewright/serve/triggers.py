"""The triggers of a server: a thread that makes the scheduler's rounds, and one for each run.

Runs are command lines, begun as requests.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import ClassVar

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.serve.service import Serving
from lakewright.serve.watched_project import WatchedProject
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.spec.project import Project
from lakewright.triggers.commands import command, ending_of
from lakewright.triggers.observer import Observer
from lakewright.triggers.records import Lane
from lakewright.triggers.scheduler import Scheduler
from lakewright.triggers.state import Attempt, Ending, Result
from lakewright.usecases.triggers import withheld_triggers
from lakewright.warm.requests import KeptRequest, Requests

log = logging.getLogger(__name__)

ARRIVAL_SECONDS, ROUND_SECONDS = 0.25, 1.0
"""The pause between two rounds, with and without triggers that look at bronze: how much later than something
is due its run begins, at most."""

IDLE_SECONDS = 2.0
"""The pause between two rounds for a project without triggers, or one that can't be loaded."""

STOP_SECONDS = 20.0
"""How long a stopping server waits for runs that it has interrupted. Those that go on are repeated later."""


@dataclass(frozen=True, slots=True)
class _Declared:
    """The triggers of the project as it was loaded last."""

    app: App
    triggers: Mapping[str, Trigger]
    observer: Observer


@dataclass
class TriggerService:
    """Runs the triggers of a project, as its files declare them at present."""

    name: ClassVar[str] = "triggers"
    url: ClassVar[None] = None

    serving: Serving
    _stopping: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)
    _runs: _Runs = field(init=False)
    _project: WatchedProject = field(init=False)
    _scheduler: Scheduler | None = field(default=None, init=False)
    _declared: _Declared | None = field(default=None, init=False)
    _logged: str = field(default="", init=False)
    _look_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._runs = _Runs(self.serving.requests)
        # Its own: requests that see a changed file would close the project in the middle of a round.
        self._project = WatchedProject(self.serving.project.open_project)

    @property
    def is_busy(self) -> bool:
        """Whether the project has triggers: a server that waits for something does not stop by itself."""
        declared = self._declared
        return declared is not None and any(each.enabled for each in declared.triggers.values())

    @property
    def has_ended(self) -> bool:
        """Whether no rounds are made any more."""
        return self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set()

    def start(self) -> None:
        """Begin to make rounds."""
        self._thread = Thread(target=self._run, name="triggers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Interrupt the runs, record how they ended, and give up the triggers."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._runs.stop()
        if self._scheduler is not None and self._declared is not None:
            try:
                self._scheduler.settle(self._declared.triggers, self._declared.observer)
                self._scheduler.release()
            except LakewrightError as error:
                log.warning("triggers are taken over when their leases end: %s", error)
        self._project.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
                self._logged = ""
            except Exception as error:
                # A broken project or a manifest that does not answer: logged once, and tried again.
                text = str(error)
                if text != self._logged:
                    level = log.warning if isinstance(error, LakewrightError) else log.exception
                    level("triggers start nothing at present: %s", text)
                    self._logged = text
            self._stopping.wait(self._pause())

    def _pause(self) -> float:
        declared = self._declared
        if self._logged or declared is None or not declared.triggers:
            return IDLE_SECONDS
        if any(trigger.on is TriggerEvent.ARRIVAL for trigger in declared.triggers.values()):
            return min(ARRIVAL_SECONDS, declared.observer.seconds_to_look())
        return ROUND_SECONDS

    def _round(self) -> None:
        declared = self._present()
        if self._scheduler is None and declared.triggers:
            app = declared.app
            app.make_store()
            self._scheduler = Scheduler(
                project=app.project.name, leases=app.leases(), start=self._runs.begin, clock=app.clock
            )
        if self._scheduler is not None:
            self._scheduler.round(declared.triggers, declared.observer)

    def _present(self) -> _Declared:
        """Return the project's triggers; whether its files have changed is looked at each second."""
        now = time.monotonic()
        if self._declared is not None and now < self._look_at:
            return self._declared
        app = self._project.app()
        if self._declared is None or self._declared.app is not app:
            triggers = {name: app.project.trigger(name) for name in app.project.triggers}
            self._declared, self._runs.app = _Declared(app, triggers, Observer(app)), app
            _log_faults(app.project)
            if self._scheduler is not None:
                self._scheduler.leases = app.leases()
        self._look_at = now + ROUND_SECONDS
        return self._declared


def _log_faults(project: Project) -> None:
    """Log what is wrong in the project's files, and which triggers wait until it is mended."""
    if not project.faults:
        return
    waiting = "".join(f"\n  {each}: {each.fault}" for each in withheld_triggers(project))
    log.warning(
        "the project's files have faults:%s\n%s",
        "".join(f"\n  {fault}" for fault in project.faults),
        f"these triggers wait until they are mended, the others go on:{waiting}"
        if waiting
        else "they touch no trigger",
    )


@dataclass
class _Runs:
    """The runs that triggers have begun, as many at once as the machine has processors.

    Attributes:
        app: The project, as it was loaded last.
    """

    requests: Requests
    app: App = field(init=False)
    _pool: ThreadPoolExecutor = field(init=False)
    _begun: dict[Lane, KeptRequest] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _is_stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="trigger")

    def begin(self, lane: Lane, trigger: Trigger, attempt: Attempt) -> Future[Ending]:
        """Begin a run as soon as there is room for it."""
        return self._pool.submit(self._run, lane, trigger, attempt)

    def stop(self) -> None:
        """Interrupt all runs, and wait some time for their ends."""
        with self._lock:
            self._is_stopping = True
            begun = list(self._begun.values())
        for request in begun:
            request.interrupt()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for request in begun:
            request.wait(STOP_SECONDS)
        self._pool.shutdown(wait=True)

    def _run(self, lane: Lane, trigger: Trigger, attempt: Attempt) -> Ending:
        app = self.app
        try:
            return self._perform(app, lane, trigger, attempt)
        except Exception as error:  # whatever goes wrong is the end of this run, not of the server
            is_passing = isinstance(error, OSError) or bool(getattr(error, "is_retryable", False))
            result = Result.RETRY if is_passing else Result.FAILED
            return Ending(attempt.due, attempt.started, app.clock(), result, str(error) or repr(error))

    def _perform(self, app: App, lane: Lane, trigger: Trigger, attempt: Attempt) -> Ending:
        arguments = command(app.project, trigger, attempt.due, lane.entity, is_retry=attempt.number > 1)
        with self._lock:
            if self._is_stopping:
                return ending_of(attempt, 130, "", app.clock())
            request = self._begun[lane] = KeptRequest(self.requests, arguments, str(lane.trigger))
        with closing(request):
            try:
                code = request.wait()
            finally:
                with self._lock:
                    del self._begun[lane]
            ending = ending_of(attempt, code, request.printed, app.clock())
            # Also of one that succeeded: its hooks may have failed, of which nobody else hears.
            level = logging.INFO if ending.result is Result.SUCCEEDED else logging.WARNING
            log.log(level, "%s ended with code %s:\n%s", " ".join(arguments), code, request.log)
            return ending
