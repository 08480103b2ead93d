"""The value of a project's status, as it is printed, sent, and shown in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.errors import Fault
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import failure_words
from lakewright.notebook import html_table
from lakewright.slices.deviations import CorrectedSlices
from lakewright.slices.late_advice import LateSlices
from lakewright.spec.words import counted, first_of
from lakewright.usecases.bronze_status import Arrived, Vanished
from lakewright.usecases.damage.damaged_tables import is_of_silver
from lakewright.usecases.damage.rebuild_status import DueRebuild, Unseen
from lakewright.usecases.damage.unrecorded_slices import Unrecorded
from lakewright.usecases.failed_runs.resume import NextStep, resume_command
from lakewright.usecases.history import Warned, alike_once, run_as_json
from lakewright.usecases.items import Row
from lakewright.usecases.quarantine_status import Quarantined
from lakewright.usecases.staleness.tainted_targets import TaintedTarget
from lakewright.usecases.triggers import TriggerStatus, Withheld
from lakewright.usecases.undeclared import UNDECLARED_ADVICE, Undeclared

__all__ = ["Elsewhere", "ProjectStatus"]

_SHOWN = (
    *("running", "locked", "stale", "failed", "waiting", "undone", "warned", "changed", "missing"),
    *(
        "unreadable",
        "arrived",
        "elsewhere",
        "rebuilds",
        "unseen",
        "undeclared",
        "rows_changed",
        "damaged",
        "lost",
        "tainted",
        "quarantined",
        "vanished",
        "corrected",
        "unrecorded",
        "behind",
        "faults",
    ),
)
"""Parts of a status that its text counts."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Open slices of an entity that were recorded in another folder than its bronze folder is now.

    No run of the project reads them, and they hold no other slice back.

    Attributes:
        count: Number of these slices.
        place: URI of the folder of the first of them.
    """

    entity: str
    count: int
    place: str

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {"entity": self.entity, "count": self.count, "place": self.place}


@dataclass(frozen=True, slots=True, repr=False)
class ProjectStatus:
    """The status of a project's manifest and history.

    Attributes:
        running: Runs in progress.
        locked: Items being processed.
        stale: Items whose lock is stale.
        failed: Items that wait for an operator, or are damaged.
        waiting: Items that are ready, or will be once the item they wait for is done.
        warned: Targets that ended with errors in the last run of their job and phase.
        quarantined: Bad rows that were put aside, by entity.
        undone: Failed runs without a later run of the same job and parameters that has done their work.
        next_steps: For the ids of these runs, what to do about them.
        is_corrected_first: Whether the commands of `corrected` must be typed before those of these runs.
        is_waiting_first: Whether slices that wait are older than what these runs take, so that their commands
            come first.
        triggers: The project's triggers.
        unrecorded: Entities with commits in their tables, if the manifest has no items of the project at all.
        behind: Slices that other tables hold and the manifest does not know of, by entity.
        disabled: The entities that are disabled.
        late_slices: The late ones of each entity, with what to type about them.
        to_place: Ids of the waiting items that a rebuild under `undone` puts in their place.
        recorded_projects: The projects that the manifest has slices of, if there are unrecorded entities.
        limits: For each entity whose targets only take some of its slices, what they take.
        commands: For each of these entities, the commands that process its first waiting slices.
        misplaced: The entities in `refused` whose commands put these slices in their place; those of others
            give later times.
        refused: For the entities of which a run would refuse the processing times of waiting slices, why;
            their commands are those that process these slices.
        blocked: The entities of which a run would process no slice, as the time of one is wrong, with why.
        foreign: What waiting items wait for that no run of the project processes, by their application.
        late: Ids of the waiting items that a run would refuse as late, whatever its processing time.
        arrived: Slices in bronze that no run has seen yet, by entity.
        elsewhere: Open slices that were recorded in another folder, by entity.
        vanished: Processed slices that are no longer in bronze, by entity.
        corrected: Skipped slices that have changed since they were recorded, by entity.
        changed: Slices that changed since they were processed, as errors with the commands to type.
        rebuilds: Tables that only a rebuild makes as they are declared now.
        unseen: Tables of which that is not known.
        undeclared: Entities that the manifest has slices of, and the project does not declare.
        damaged: Tables that nothing can read, as errors with the commands to type.
        lost: Tables and files of targets that do not exist any more, as errors with the commands to type.
        rows_changed: That other programs have changed rows of tables, as errors with the commands to type.
        tainted: Targets that are dirty until they are built again, as what they were built from has changed.
        missing: Slices that wait and are gone from bronze, as errors.
        unreadable: What can't be read in bronze and silver, as errors.
        unwritable: That the manifest can be read but not written, so that a run would fail; None if it can.
        faults: What is wrong in the project's files.
        withheld: The triggers that start nothing because of it.
    """

    running: tuple[Run, ...]
    locked: tuple[Row, ...]
    stale: tuple[Row, ...]
    failed: tuple[Row, ...]
    waiting: tuple[Row, ...]
    undone: tuple[Run, ...]
    warned: tuple[Warned, ...]
    last_runs: tuple[Run, ...]
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    commands: Mapping[str, tuple[Command, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    blocked: Mapping[str, Fault] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    arrived: tuple[Arrived, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    vanished: tuple[Vanished, ...] = ()
    corrected: tuple[CorrectedSlices, ...] = ()
    changed: tuple[Fault, ...] = ()
    missing: tuple[Fault, ...] = ()
    unreadable: tuple[Fault, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    triggers: tuple[TriggerStatus, ...] = ()
    unrecorded: tuple[str, ...] = ()
    behind: tuple[Unrecorded, ...] = ()
    misplaced: frozenset[str] = frozenset()
    recorded_projects: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    late_slices: Mapping[str, LateSlices] = field(default_factory=dict)
    to_place: frozenset[str] = frozenset()
    faults: tuple[Fault, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    rebuilds: tuple[DueRebuild, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    undeclared: tuple[Undeclared, ...] = ()
    rows_changed: tuple[Fault, ...] = ()
    damaged: tuple[Fault, ...] = ()
    lost: tuple[Fault, ...] = ()
    tainted: tuple[TaintedTarget, ...] = ()
    unwritable: Fault | None = None
    next_steps: Mapping[str, NextStep] = field(default_factory=dict)
    is_waiting_first: bool = False
    is_corrected_first: bool = False

    def step_after(self, run: Run) -> NextStep:
        """Return what to do about a failed run."""
        return self.next_steps.get(run.run_id) or NextStep((resume_command(run),))

    def commands_for(self, row: Row) -> tuple[str, ...]:
        """Return the commands to type about a waiting row; none if the next run processes it."""
        if str(row.application) in self.foreign or row.item.item_id in self.to_place:
            return ()
        if row.item.item_id in self.late:
            return (self.late_slices[row.entity or ""].only(row.slice).command,)
        if row.entity in self.blocked:
            return ()
        return self.commands.get(row.entity or "", ())

    def refusal_of(self, row: Row) -> str | None:
        """Return why a run would refuse a waiting row, or None."""
        if (why := self.foreign.get(str(row.application))) is not None:
            return f"it waits {why}it"
        if row.item.item_id in self.late:
            return f"the slice is {self.late_slices[row.entity or ''].words}"
        if (blocked := self.blocked.get(row.entity or "")) is not None:
            return blocked.message
        return self.refused.get(row.entity or "")

    @property
    def alike_warned(self) -> list[Warned]:
        """The warnings of targets, those once that are the same in several instances."""
        return alike_once(self.warned)

    @property
    def damaged_silver(self) -> tuple[Fault, ...]:
        """The damaged tables of entities, which come before what is built from them."""
        return tuple(filter(is_of_silver, self.damaged))

    @property
    def damaged_gold(self) -> tuple[Fault, ...]:
        """The damaged tables that targets of jobs build."""
        return tuple(fault for fault in self.damaged if not is_of_silver(fault))

    @property
    def is_calm(self) -> bool:
        """Whether nothing is running, waiting or failed."""
        return not (
            self.running
            or self.locked
            or self.stale
            or self.failed
            or self.waiting
            or self.arrived
            or self.undone
            or self.warned
            or self.unrecorded
            or self.behind
            or any(each.has_failed for each in self.triggers)
            or self.faults
            or self.changed
            or self.corrected
            or self.rebuilds
            or self.rows_changed
            or self.damaged
            or self.lost
            or self.tainted
            or self.missing
            or self.unreadable
            or self.unwritable
        )

    def __repr__(self) -> str:
        counts = {part: len(getattr(self, part)) for part in _SHOWN}
        counts["triggers"] = sum(each.has_failed for each in self.triggers)
        said = " ".join(f"{part}={count}" for part, count in counts.items() if count)
        return f"<ProjectStatus {said or 'nothing is running, waiting or failed'}>"

    def _repr_html_(self) -> str:
        items = {
            "locked": self.locked,
            "stale lock": self.stale,
            "failed": self.failed,
            "waits": self.waiting,
        }
        rows = [("running", run.job, run.run_id, "") for run in self.running]
        rows += [(run.status, run.job, run.run_id, self.step_after(run).commands[0]) for run in self.undone]
        rows += [
            (state, row.entity or str(row.application), _said(row, state), self._typed(row))
            for state, found in items.items()
            for row in found
        ]
        if self.unwritable is not None:
            rows.append(("manifest", "", self.unwritable.message, self.unwritable.remedy or ""))
        rows += _concern_rows(self)
        title = "Status" if rows else "Nothing is running, waiting or failed"
        rows += [("not looked at", each.entity, each.why, "") for each in self.unseen]
        return html_table(title, ("state", "entity or job", "slice, run or message", "command"), rows)

    def _typed(self, row: Row) -> str:
        """Return the command to type about a row; empty if there is none."""
        waits = self.commands_for(row) if row in self.waiting else ()
        return next(iter(waits), row.next_command or "")

    def as_json(self) -> dict[str, Any]:
        """Return the document that `status -o json` prints."""
        undone = {run.run_id for run in self.undone}
        return {
            "running": [*map(run_as_json, self.running), *(row.as_json() for row in self.locked)],
            "waiting": [
                {
                    **row.as_json(),
                    "limits": list(self.limits.get(row.entity or "", ())),
                    "do": list(self.commands_for(row)),
                    "refused": self.refusal_of(row),
                }
                for row in self.waiting
            ],
            "arrived": [each.as_json() for each in self.arrived],
            "failed": [{**row.as_json(), "do": row.next_command} for row in self.failed],
            "warnings": [one.as_json() for one in self.warned],
            "stale": [{**row.as_json(), "do": row.next_command} for row in self.stale],
            "quarantined": [each.as_json() for each in self.quarantined],
            "unrecorded": list(self.unrecorded),
            "behind": [each.as_json() for each in self.behind],
            "recorded_projects": list(self.recorded_projects),
            "triggers": [each.as_json() for each in self.triggers],
            "unwritable": None if self.unwritable is None else self.unwritable.as_json(),
            "faults": [fault.as_json() for fault in self.faults],
            "withheld": [each.as_json() for each in self.withheld],
            "missing": [fault.as_json() for fault in self.missing],
            "unreadable": [fault.as_json() for fault in self.unreadable],
            "changed": [fault.as_json() for fault in self.changed],
            "elsewhere": [each.as_json() for each in self.elsewhere],
            "vanished": [each.as_json() for each in self.vanished],
            "corrected": [each.as_json() for each in self.corrected],
            "rebuilds": [each.as_json() for each in self.rebuilds],
            "unseen": [each.as_json() for each in self.unseen],
            "undeclared": [each.as_json() for each in self.undeclared],
            "rows_changed": [fault.as_json() for fault in self.rows_changed],
            "damaged": [fault.as_json() for fault in self.damaged],
            "lost": [fault.as_json() for fault in self.lost],
            "tainted": [each.as_json() for each in self.tainted],
            "last_runs": [
                {**run_as_json(run), "do": self.step_after(run).commands[0] if run.run_id in undone else None}
                for run in self.last_runs
            ],
        }


def _said(row: Row, state: str) -> str:
    """Return the slice of a row, and why it failed."""
    return f"{row.slice}: {failure_words(row.item)}" if state == "failed" else row.slice


def _concern_rows(status: ProjectStatus) -> Iterator[tuple[str, str, str, str]]:
    """Yield a state, an entity or target, a message and what to do, for what is beside runs and slices."""
    for fault in status.faults:
        yield "project", "", fault.located_message, fault.remedy or ""
    yield from _fault_rows("bronze", (*status.changed, *status.unreadable, *status.missing))
    yield from _fault_rows("table", status.damaged_silver)
    for due in status.rebuilds:
        yield "rebuild", due.entity, due.reason, due.command
    yield from _fault_rows("table", status.rows_changed)
    for warned in status.warned:
        error = warned.entry["error"] or {"message": "; ".join(warned.entry["reasons"])}
        yield "warning", warned.subject, error["message"], remedy_of(error) or ""
    yield from _fault_rows("table", (*status.damaged_gold, *status.lost))
    for dirty in status.tainted:
        yield (
            "dirty",
            dirty.target,
            dirty.reason,
            ("; then " if dirty.is_emptied else "; ").join(dirty.commands) or dirty.advice,
        )
    yield from _notice_rows(status)
    for trigger in status.triggers:
        if trigger.has_failed:
            yield f"trigger {trigger.word}", trigger.lane.trigger, trigger.message, ""


def _fault_rows(state: str, faults: Iterable[Fault]) -> Iterator[tuple[str, str, str, str]]:
    return ((state, "", fault.message, fault.remedy or "") for fault in faults)


def _notice_rows(status: ProjectStatus) -> Iterator[tuple[str, str, str, str]]:
    """Yield the same of what an operator should know of."""
    for aside in status.quarantined:
        yield "put aside", aside.entity, f"{counted(aside.rows, 'bad row')} in {aside.folder}", aside.advice
    for new in status.arrived:
        names = first_of((*new.slices, *new.incomplete), 3)
        yield "arrived", new.entity, names, ""
    for left in status.elsewhere:
        yield "elsewhere", left.entity, f"{counted(left.count, 'slice')} recorded in {left.place}", ""
    for each in status.undeclared:
        yield "not declared", each.entity, counted(each.processed, "processed slice"), UNDECLARED_ADVICE
    for gone in status.vanished:
        yield "gone", gone.entity, f"{counted(gone.count, 'processed slice')} gone from bronze", ""
    for one in status.corrected:
        yield "corrected", one.entity, one.words, one.advice
    for trigger in status.triggers:
        for text in trigger.warnings:
            yield "trigger warned", str(trigger.lane), text, ""
    for behind in status.behind:
        said = f"the manifest does not know slices of its table: {behind.words}"
        yield "manifest", behind.entity, said, "; ".join(behind.commands)
    for entity in status.unrecorded:
        yield "manifest", entity, "its table has commits, but the manifest has none of its slices", ""
