"""The triggers of a project: list them with their state, and run, pause or resume one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from lakewright.app import App
from lakewright.errors import Fault, SpecError, UsageError
from lakewright.errors.phrase import Command
from lakewright.manifest.journal import Run
from lakewright.manifest.lease import find_lease
from lakewright.manifest.lock import recovery_command
from lakewright.manifest.plain_values import document_of, json_of
from lakewright.manifest.store import Query, Store
from lakewright.manifest.verdict import Verdict
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.project import Project
from lakewright.spec.suggestions import suggestion
from lakewright.stores.registry import read_store
from lakewright.triggers.records import Lane, SavedState, TriggerRecords, lease_key
from lakewright.triggers.scheduler import lanes
from lakewright.triggers.state import SERVER_ENDED, Ending, TriggerState, next_due
from lakewright.usecases.history import failed_items, is_superseded
from lakewright.usecases.items import entity_application, typed_name

MOST_NAMED = 3
RECENT = 200


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    """A trigger, or one of the entities that it processes, with its state.

    Attributes:
        state: What the manifest keeps of it.
        next: The next time of its schedule; None if it waits for an event.
        holder: The server that runs it, as text; None if none does.
        run_id: Its last run in the history, if that did not succeed and got that far.
        first: The commands without which a run that failed would fail again, once the cause is mended.
        is_superseded: Whether a later run of its job stands for its last run, which failed.
    """

    lane: Lane
    trigger: Trigger
    state: TriggerState
    next: datetime | None
    holder: str | None
    run_id: str | None = None
    first: tuple[Command, ...] = ()
    is_superseded: bool = False

    @property
    def runs(self) -> str:
        """What it runs, as one would type it."""
        phase = "" if self.trigger.phase is None else f" {self.trigger.phase.lower()}"
        return f"job {self.trigger.job}{phase}" if self.trigger.job else f"process {self.lane.entity}"

    @property
    def when(self) -> str:
        """When it runs."""
        return self.trigger.when(self.lane.entity or "")

    @property
    def word(self) -> str:
        """Its state in one word: disabled, running, paused, interrupted, retrying, failed, due or waiting.

        A run is interrupted if its server has ended, and no other one has begun to repeat it. A trigger that
        was paused during its run is running until that ends. One whose failed run somebody has done again by
        another run of the job waits as before.
        """
        state = self.state
        words = {
            "disabled": not self.trigger.enabled,
            "running": state.running is not None and self.holder is not None,
            "paused": state.is_paused,
            "interrupted": state.running is not None,
            "retrying": state.failures > 0,
            "failed": bool(state.waits) and not self.is_superseded,
            "due": bool(state.pending),
        }
        return next((word for word, holds in words.items() if holds), "waiting")

    @property
    def has_failed(self) -> bool:
        """Whether its last run failed or was interrupted, and is tried again or not."""
        return self.word in {"failed", "retrying", "interrupted"}

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands to type in this order after a failure or a pause: the last one has a run begin."""
        if self.state.is_paused:
            return (Command("triggers", "resume", self.lane.trigger),)
        if self.word in {"retrying", "interrupted"} and self.holder is None:
            return (Command("serve"),)
        return (*self.first, Command("triggers", "run", self.lane.trigger))

    @property
    def message(self) -> str:
        """Why its last run did not succeed; empty if it did."""
        if self.word == "interrupted":
            return f"the server that ran it {SERVER_ENDED}, and no server runs now to repeat it"
        return self.state.waits or (self.state.last.message if self.state.last else "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the slices and targets of its last run warned of."""
        return self.state.last.warnings if self.state.last else ()

    def as_json(self) -> dict[str, Any]:
        """Return the object that `triggers -o json` lists."""
        state, last = self.state, self.state.last
        return {
            "trigger": self.lane.trigger,
            "entity": self.lane.entity or None,
            "runs": self.runs,
            "when": self.when,
            "state": self.word,
            "next": json_of(state.retry_at or self.next),
            "due": json_of(state.pending),
            "failures": state.failures,
            "message": self.message or None,
            "warnings": list(self.warnings),
            "is_paused": state.is_paused,
            "do": list(self.commands) if state.is_paused or self.word in {"failed", "interrupted"} else [],
            "last": None
            if last is None
            else document_of(last, "due", "started", "finished", "result", run_id=last.run_id or self.run_id),
            "held_by": self.holder,
            "description": self.trigger.description,
        }


@dataclass(frozen=True, slots=True)
class Withheld:
    """A trigger, or one of its entities or targets, that waits for a fault in the project's files.

    Attributes:
        target: The target of the trigger's job that waits; None if the whole lane does.
    """

    lane: Lane
    fault: Fault
    target: str | None = None

    def __str__(self) -> str:
        return str(self.lane) if self.target is None else f"{self.lane} ({self.target})"

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` lists."""
        named = {"trigger": self.lane.trigger, "entity": self.lane.entity or None, "target": self.target}
        return {**named, "fault": self.fault.as_json()}


def withheld_triggers(project: Project) -> tuple[Withheld, ...]:
    """Return what waits until the project's files are mended; the other triggers go on."""
    faulty = project.faulty
    found = [Withheld(Lane(name), fault) for (of, name), fault in faulty.items() if of == "trigger"]
    for name, definition in project.triggers.items():
        trigger = cast("Trigger", definition.resolve(project.scope))
        for entity in trigger.entities:
            if (fault := faulty.get(("entity", entity))) is not None:
                found.append(Withheld(Lane(name, entity), fault))
        for target in _targets(project, trigger):
            if (fault := faulty.get(("target", target))) is not None:
                found.append(Withheld(Lane(name), fault, target))
    return tuple(sorted(found, key=lambda each: (each.lane, each.target or "")))


def _targets(project: Project, trigger: Trigger) -> tuple[str, ...]:
    """Return the targets of a trigger's job, as far as they are known before it runs."""
    job = project.jobs.get(trigger.job) if trigger.job else None
    try:
        return () if job is None else job.target_names(project.job_scope(job))
    except SpecError:
        return ()


def list_triggers(app: App) -> tuple[TriggerStatus, ...]:
    """Return the project's triggers with their states; nothing is written."""
    declared = {name: app.project.trigger(name) for name in app.project.triggers}
    if not declared:
        return ()
    return read_store(app.manifest_settings, lambda store: tuple(_statuses(app, store, declared)))


def triggers_of_job(app: App, job: str) -> tuple[TriggerStatus, ...]:
    """Return the triggers that run a job, with their states."""
    return tuple(each for each in list_triggers(app) if each.trigger.job == job)


def run_trigger(app: App, name: str) -> tuple[TriggerStatus, ...]:
    """Make a run of a trigger due now; the server that holds the trigger starts it.

    Raises:
        UsageError: There is no such trigger, or it is disabled.
        SpecError: It waits for a fault in the project's files.
    """
    if not _find(app, name).enabled:
        raise UsageError(
            f"the trigger {name!r} is disabled", remedy="Remove `enabled: false` where it is declared."
        )
    return _changed(app, name, lambda state: state.ask(app.clock()))


def pause_trigger(app: App, name: str, *, is_paused: bool) -> tuple[TriggerStatus, ...]:
    """Pause a trigger, or let it go on; what became due meanwhile is remembered.

    Raises:
        UsageError: There is no such trigger.
    """
    return _changed(app, name, lambda state: state.paused(is_paused))


def _changed(app: App, name: str, how: Any) -> tuple[TriggerStatus, ...]:
    trigger = _find(app, name)
    app.make_store()
    records = TriggerRecords(app.store, app.project.name)
    for lane in lanes(name, trigger):
        records.change(lane, how)
    return tuple(_statuses(app, app.store, {name: trigger}))


def _find(app: App, name: str) -> Trigger:
    if name not in app.project.triggers and ("trigger", name) not in app.project.faulty:
        raise UsageError(f"there is no trigger {name!r}", remedy=suggestion(name, app.project.triggers))
    return app.project.trigger(name)


def _statuses(app: App, store: Store, declared: Mapping[str, Trigger]) -> Iterator[TriggerStatus]:
    saved, now = TriggerRecords(store, app.project.name).all(), app.clock()
    for name, trigger in declared.items():
        lease = find_lease(store, lease_key(app.project.name, name))
        is_over = lease is None or lease.is_expired(store.now()) or app.leases(store).is_dead(lease.holder)
        holder = None if is_over or lease is None else f"{lease.holder.host} (process {lease.holder.pid})"
        for lane in lanes(name, trigger):
            state = saved.get(lane, SavedState()).state
            found = TriggerStatus(lane, trigger, state, next_due(trigger, now), holder)
            if found.has_failed:
                run = _last_run(app, found)
                is_done = found.word == "failed" and run is not None and is_superseded(app, run)
                first = _first(app, lane, run) if found.word == "failed" and not is_done else ()
                run_id = None if run is None else run.run_id
                found = replace(found, run_id=run_id, first=first, is_superseded=is_done)
            yield found


def _last_run(app: App, trigger: TriggerStatus) -> Run | None:
    """Return the last run of a trigger in the history; a run that was killed did not report its id."""
    state, job = trigger.state, trigger.trigger.job
    last = state.running or state.last
    if isinstance(last, Ending) and last.run_id:
        return app.journal.run(last.run_id)
    if last is None or not job:
        return None
    runs = app.journal.runs(RECENT, project=app.project.name, job=job, since=last.started)
    ended = last.finished if isinstance(last, Ending) else None
    of_trigger = (run for run in runs if run.facts.get("trigger") == trigger.lane.trigger)
    return next((run for run in of_trigger if ended is None or run.started <= ended), None)


def _first(app: App, lane: Lane, run: Run | None) -> tuple[Command, ...]:
    """Return the commands that a failed run of a trigger needs before another one can succeed."""
    if not lane.entity:
        failed = [] if run is None else failed_items(app, run)
    elif ("entity", lane.entity) in app.project.faulty:
        return ()
    else:
        query = Query(entity_application(app, lane.entity), frozenset({Verdict.FAILED}))
        failed = list(app.store.select(query))
    commands = [recovery_command(item, typed_name(app, item)) for item in failed[:MOST_NAMED]]
    if len(failed) > MOST_NAMED:
        commands.append(Command("manifest", "ls", "--state", "failed"))
    return tuple(dict.fromkeys(commands))
