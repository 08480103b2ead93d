"""What only a look at the lake tells the inbox: at bronze, the quarantine, and the logs of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakewright.app import App
from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase, ShellLine
from lakewright.slices.application import application_of
from lakewright.slices.recover_from_log import UNRECORDED_ADVICE
from lakewright.spec.words import counted, first_of
from lakewright.usecases.bronze_status import BronzeStatus, look_at_bronze
from lakewright.usecases.concerns import MOST, Concern, fault_concern
from lakewright.usecases.damage.damaged_tables import damaged_tables, is_of_silver, lost_beside
from lakewright.usecases.damage.lost_outputs import LostOutputs, lost_outputs
from lakewright.usecases.damage.rebuild_status import DueRebuild, RebuildStatus, due_rebuilds
from lakewright.usecases.damage.unrecorded_slices import (
    Unrecorded,
    items_after_recovery,
    unrecorded_slices,
)
from lakewright.usecases.history import Warned
from lakewright.usecases.quarantine_status import Quarantined, read_quarantined
from lakewright.usecases.staleness.tainted_targets import TaintedTarget
from lakewright.usecases.status import recorded_projects, told_messages, unrecorded_entities

__all__ = [
    "Observed",
    "concerns_of_gold",
    "concerns_of_records",
    "concerns_of_silver",
    "observe_lake",
    "observed_notices",
]

MOST_NAMED = 5
"""The largest number of slices or tables that a notice names."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What takes a look at bronze, tables and all processed slices, so that it grows with their number.

    Attributes:
        unrecorded: Entities whose tables have commits, if the manifest has no item of the project at all.
        recorded_projects: The projects that the manifest has slices of, if there are such entities.
        behind: Slices that other tables hold and the manifest does not know of, by entity.
        rebuilds: The tables that only a rebuild makes as they are declared now.
        damaged: Tables that nothing can read, as errors with the commands to type.
        lost: What jobs have built and does not exist any more.
        at: When it was looked at.
    """

    bronze: BronzeStatus
    quarantined: tuple[Quarantined, ...]
    unrecorded: tuple[str, ...]
    recorded_projects: tuple[str, ...]
    behind: tuple[Unrecorded, ...]
    rebuilds: RebuildStatus
    damaged: tuple[Fault, ...]
    lost: LostOutputs
    at: datetime


def observe_lake(app: App) -> Observed:
    """Return what bronze, the quarantine and the logs of tables show now; they are read anew."""
    unrecorded = tuple(unrecorded_entities(app))
    behind = tuple(unrecorded_slices(app))
    bronze, rebuilds = look_at_bronze(app, items_after_recovery(behind)), due_rebuilds(app)
    quarantined = tuple(read_quarantined(app, bronze.changed))
    projects = recorded_projects(app) if unrecorded else ()
    damaged, lost = tuple(damaged_tables(app)), lost_outputs(app)
    return Observed(
        bronze, quarantined, unrecorded, projects, behind, rebuilds, damaged, lost, app.store.now()
    )


def concerns_of_records(observed: Observed) -> Iterator[Concern]:
    """Yield that the manifest does not know what tables hold."""
    if observed.unrecorded:
        projects = first_of(observed.recorded_projects, MOST_NAMED)
        others = f" only of {projects}," if projects else ""
        yield Concern(
            kind="damaged",
            subject="manifest",
            why=f"the manifest has no slice of this project,{others} but tables have commits: "
            f"{first_of(observed.unrecorded, MOST_NAMED)}",
            since=None,
            advice="If it is another one, or was moved, bring it back or correct `manifest:`. "
            "Otherwise the next run recovers the slices that the tables hold.",
            command=Command("manifest", "discover"),
        )
    for behind in observed.behind[:MOST]:
        yield Concern(
            kind="damaged",
            subject=behind.entity,
            why=f"the manifest does not know slices of its table: {behind.words}",
            since=None,
            advice=f"{UNRECORDED_ADVICE}.",
            command=next(iter(behind.commands), None),
            entity=behind.entity,
        )


def concerns_of_silver(
    app: App, observed: Observed, warned: Collection[Warned], ready: Mapping[tuple[str, str | None], int]
) -> Iterator[Concern]:
    """Yield what of bronze and silver needs a person: it is mended before a run builds from it.

    Args:
        app: The project.
        observed: What a look found.
        warned: What runs have told already.
        ready: How many slices each application has ready, by its key.
    """
    bronze = observed.bronze
    yield from (fault_concern("unreadable", "bronze", fault) for fault in bronze.unreadable[:MOST])
    yield from (fault_concern("missing", "bronze", fault) for fault in bronze.missing[:MOST])
    yield from _damaged([fault for fault in observed.damaged if is_of_silver(fault)])
    for due in observed.rebuilds.due[:MOST]:
        yield _rebuild_concern(app, due, ready)
    for fault in observed.rebuilds.rows_changed_beside(told_messages(warned))[:MOST]:
        yield fault_concern("rows_changed", "silver", fault)
    for fault in bronze.changed[:MOST]:
        yield fault_concern("changed", "bronze", fault)


def concerns_of_gold(observed: Observed, tainted: Sequence[TaintedTarget] = ()) -> Iterator[Concern]:
    """Yield the tables and files of targets that can't be read, are gone, or that others have changed."""
    yield from _damaged([fault for fault in observed.damaged if not is_of_silver(fault)])
    yield from _damaged(lost_beside(observed.lost.without_tainted(tainted), observed.damaged))
    for fault in observed.lost.rows_changed[:MOST]:
        yield fault_concern("rows_changed", fault.details["subject"], fault)


def _damaged(faults: Sequence[Fault]) -> Iterator[Concern]:
    for fault in faults[:MOST]:
        typed = ShellLine(" && ".join(fault.details["commands"]))
        yield replace(fault_concern("damaged", fault.details["subject"], fault), command=typed)


def _rebuild_concern(app: App, due: DueRebuild, ready: Mapping[tuple[str, str | None], int]) -> Concern:
    entity = app.project.entities.get(due.entity) if due.refuses_slices else None
    application = None if entity is None else application_of(app.project.name, entity)
    return Concern(
        kind="rebuild",
        subject=due.entity,
        why=due.reason,
        more="No slice is processed until then." if due.refuses_slices else "",
        since=None,
        behind=0 if application is None else ready.get(application.key, 0),
        advice="Build the table again from its slices, or declare it as it was.",
        command=due.command,
        entity=due.entity,
    )


def observed_notices(observed: Observed) -> Iterator[Concern]:
    """Yield what an operator should know of: slices that are gone, rows put aside, tables not looked at."""
    for gone in observed.bronze.vanished[:MOST]:
        yield Concern(
            kind="vanished",
            subject=gone.entity,
            why=f"{counted(gone.count, 'processed slice')} no longer in bronze: "
            f"{first_of(gone.slices, MOST_NAMED)}",
            since=None,
            advice="The table keeps their rows; a rebuild would need them.",
            command=Command("manifest", "discover", "--entity", gone.entity),
            entity=gone.entity,
        )
    for found in observed.bronze.corrected[:MOST]:
        yield Concern(
            kind="corrected",
            subject=found.entity,
            why=found.words,
            since=None,
            advice=found.advice,
            command=found.commands[0],
            entity=found.entity,
        )
    for each in observed.quarantined[:MOST]:
        yield Concern(
            kind="quarantined",
            subject=each.entity,
            why=f"{counted(each.rows, 'bad row')} of {counted(len(each.slices), 'slice')} put aside: "
            f"{first_of(each.slices, MOST_NAMED)}",
            since=None,
            advice=Phrase(f"They are in {each.folder}. ", each.advice),
            entity=each.entity,
        )
    reasons: dict[str, list[str]] = {}
    for unseen in (*observed.rebuilds.unseen_beside(observed.damaged), *observed.lost.unseen):
        reasons.setdefault(unseen.why, []).append(unseen.entity)
    for why, names in list(reasons.items())[:MOST]:
        yield Concern(
            kind="unseen",
            subject=first_of(names, MOST_NAMED),
            why=Phrase("not looked at for a rebuild: ", why),
            since=None,
        )
