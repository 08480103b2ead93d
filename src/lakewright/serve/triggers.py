"""The triggers of a server: a thread that makes the scheduler's rounds, and one for each run.

Runs are command lines, begun as requests. Their output goes to files that are removed at their end.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, ClassVar

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.serve.requests import Request, Requests
from lakewright.serve.service import Serving
from lakewright.serve.watched_project import WatchedProject
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.spec.project import Project
from lakewright.triggers.commands import command
from lakewright.triggers.observer import Observer
from lakewright.triggers.outcome import ending_of
from lakewright.triggers.records import Lane
from lakewright.triggers.scheduler import Scheduler
from lakewright.triggers.state import Attempt, Ending, Result
from lakewright.usecases.triggers import withheld_triggers

log = logging.getLogger(__name__)

ARRIVAL_SECONDS, ROUND_SECONDS = 0.25, 1.0
"""The pause between two rounds, with and without triggers that look at bronze: how much later than something
is due its run begins, at most."""

IDLE_SECONDS = 2.0
"""The pause between two rounds for a project without triggers, or one that can't be loaded."""

STOP_SECONDS = 20.0
"""How long a stopping server waits for runs that it has interrupted. Those that go on are repeated later."""

LONGEST_OUTPUT = 50_000_000
"""The largest document, in bytes, that is read from a run's output."""


def make(serving: Serving) -> TriggerService:
    """Return the service that runs the project's triggers."""
    return TriggerService(WatchedProject(serving.open_app), serving)


@dataclass
class TriggerService:
    """Runs the triggers of a project, as its files declare them at present."""

    name: ClassVar[str] = "triggers"
    url: ClassVar[None] = None

    project: WatchedProject
    serving: Serving
    _stopping: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)
    _runs: _Runs = field(init=False)
    _scheduler: Scheduler | None = field(default=None, init=False)
    _observer: Observer | None = field(default=None, init=False)
    _declared: dict[str, Trigger] = field(default_factory=dict, init=False)
    _loads: int = field(default=-1, init=False)
    _logged: str = field(default="", init=False)
    _app: App | None = field(default=None, init=False)
    _look_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._runs = _Runs(self.serving.requests, self.serving)

    @property
    def is_busy(self) -> bool:
        """Whether the project has triggers: a server that waits for something does not stop by itself."""
        return any(trigger.enabled for trigger in self._declared.values())

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
        if self._scheduler is not None and self._observer is not None:
            try:
                self._scheduler.settle(self._declared, self._observer)
                self._scheduler.release()
            except LakewrightError as error:
                log.warning("triggers are taken over when their leases end: %s", error)
        self.project.close()

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
        if self._logged or not self._declared:
            return IDLE_SECONDS
        looks_at_bronze = any(trigger.on is TriggerEvent.ARRIVAL for trigger in self._declared.values())
        if not looks_at_bronze or self._observer is None:
            return ROUND_SECONDS
        return min(ARRIVAL_SECONDS, self._observer.seconds_to_look())

    def _round(self) -> None:
        app = self._present_app()
        if self.project.loads != self._loads:
            self._declared = {name: app.project.trigger(name) for name in app.project.triggers}
            self._observer, self._loads, self._runs.app = Observer(app), self.project.loads, app
            _log_faults(app.project)
            if self._scheduler is not None:
                self._scheduler.leases = app.leases()
        if not self._declared and self._scheduler is None:
            return
        if self._scheduler is None:
            app.make_store()
            self._scheduler = self._new_scheduler(app)
            self._runs.ended = self._scheduler.ended
        scheduler, observer = self._scheduler, self._observer
        if observer is not None:
            scheduler.round(self._declared, observer)

    def _present_app(self) -> App:
        """Return the project; whether its files have changed is looked at each second."""
        now = time.monotonic()
        if self._app is None or now >= self._look_at:
            self._app, self._look_at = None, now + ROUND_SECONDS
            self._app = self.project.app()
        return self._app

    def _new_scheduler(self, app: App) -> Scheduler:
        return Scheduler(
            project=app.project.name, leases=app.leases(), start=self._runs.begin, clock=app.clock
        )


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
        ended: Receives how each run ended.
    """

    requests: Requests
    serving: Serving
    app: App | None = None
    ended: Callable[[Lane, Ending], None] = lambda _lane, _ending: None
    _pool: ThreadPoolExecutor = field(init=False)
    _begun: dict[Lane, Request] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _is_stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="trigger")

    def begin(self, lane: Lane, trigger: Trigger, attempt: Attempt) -> None:
        """Begin a run as soon as there is room for it."""
        self._pool.submit(self._run, lane, trigger, attempt)

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

    def _run(self, lane: Lane, trigger: Trigger, attempt: Attempt) -> None:
        app = self.app
        if app is None:
            return
        try:
            ending = self._perform(app, lane, trigger, attempt)
        except Exception as error:  # whatever goes wrong is the end of this run, not of the server
            is_passing = isinstance(error, OSError) or bool(getattr(error, "is_retryable", False))
            result = Result.RETRY if is_passing else Result.FAILED
            ending = Ending(attempt.due, attempt.started, app.clock(), result, str(error) or repr(error))
        self.ended(lane, ending)

    def _perform(self, app: App, lane: Lane, trigger: Trigger, attempt: Attempt) -> Ending:
        is_retry = attempt.number > 1
        typed = command(app.project, trigger, attempt.due, lane.entity, is_retry=is_retry)
        arguments = (*typed, "-o", "json")
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log_of_run:
            with self._lock:
                if self._is_stopping:
                    return ending_of(attempt, 130, "", app.clock())
                request = self.requests.begin(
                    arguments,
                    self.serving.environ,
                    Path(app.project.basedir),
                    stdout=out,
                    stderr=log_of_run,
                    trigger=str(lane.trigger),
                )
                self._begun[lane] = request
            try:
                code = request.wait()
            finally:
                with self._lock:
                    del self._begun[lane]
            ending = ending_of(attempt, 1 if code is None else code, _content(out), app.clock())
            if ending.result is not Result.SUCCEEDED:
                printed = _content(log_of_run)
                log.warning("%s ended with code %s:\n%s", " ".join(arguments), code, printed)
            return ending


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LONGEST_OUTPUT).decode("utf-8", "replace")
