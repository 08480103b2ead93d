"""Build an entity's table again from its slices, under today's declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Verdict
from lakewright.notebook import html_table
from lakewright.plan.status import Status
from lakewright.run.execute import Interruption
from lakewright.slices.application import application_of
from lakewright.slices.other_runs import strategy_of_jobs
from lakewright.slices.rewind.difference import TableDifference
from lakewright.slices.rewind.plan_rebuild import RebuildPlan, RebuildStart, plan_rebuild
from lakewright.slices.rewind.side_table import side_address
from lakewright.spec.words import counted, first_of
from lakewright.transform.instants import parse_instant_in
from lakewright.usecases.history import REBUILD
from lakewright.usecases.readers import readers, readers_words
from lakewright.usecases.replay_table import arriving_slices
from lakewright.usecases.rewinding import (
    carry_out,
    rewind_as_json,
    settled,
    skipped_words,
)

if TYPE_CHECKING:
    from lakewright.manifest.journal import Run
    from lakewright.slices.rewind.placing import Arriving
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = ["Rebuilt", "ended_rebuild", "rebuild_table"]

MOST_NAMED = 5

RECENT = 200
"""The number of latest runs among which the last rebuild of a table is looked for."""


@dataclass(frozen=True, slots=True, repr=False)
class Rebuilt:
    """A table that was built beside the old one, and perhaps swapped in.

    Attributes:
        entity: Name of the entity.
        plan: What was built.
        difference: Its rows compared with those of the old one; None if that has none, or can't be read.
        version: The table's version after the swap; None if it was not swapped in.
        readers: The targets that are built from the table, if its rows have changed.
        beside: Where the table is that was not swapped in; None if it was.
    """

    entity: str
    plan: RebuildPlan
    difference: TableDifference | None
    version: int | None = None
    readers: tuple[str, ...] = ()
    beside: Address | None = None

    @property
    def skipped_words(self) -> str | None:
        """Which slices were left out because they were skipped; None for none."""
        return skipped_words(self.plan.replay.skipped_names, "the new table")

    @property
    def requeued_words(self) -> str | None:
        """Which requeued slices were left out, with the command that applies them in their place."""
        names = self.plan.requeued
        if not names:
            return None
        was, it, its = ("was", "it", "its") if len(names) == 1 else ("were", "them", "their")
        options = [word for name in names for word in ("--include", name)]
        typed = Command("rebuild", self.entity, *options)
        return Phrase(
            f"{first_of(names, MOST_NAMED)} {was} requeued and left out, as the table has no "
            f"commit of {it}: the next run processes {it}, or ",
            typed,
            f" applies {it} in {its} place",
        )

    @property
    def missing_words(self) -> str | None:
        """Why the rows are not compared with those of the old table; None if they are, or there is none."""
        gone = self.plan.missing
        if not gone:
            return None
        are = "is" if len(gone) == 1 else "are"
        return (
            f"{counted(len(gone), 'file')} of the old table {are} gone, such as {gone[0]}: its rows can't be "
            "read, and were not compared"
        )

    @property
    def beside_words(self) -> str | None:
        """What becomes of the table that was not swapped in; None if it was."""
        if self.beside is None:
            return None
        removal = "delete that folder" if self.beside.name is None else f"DROP TABLE {self.beside.sql}"
        return (
            f"the new table stays in {self.beside}: a rebuild of the same slices uses it, any other removes "
            f"it; to remove it now, {removal}"
        )

    def __repr__(self) -> str:
        done = "checked" if self.version is None else f"done by version {self.version}"
        changed = "" if self.difference is None else f": {self.difference.text}"
        return f"<Rebuilt {self.entity} {done}{changed}>"

    @property
    def words(self) -> tuple[str, ...]:
        """What the rebuild leaves out and loses, and what becomes of it."""
        found = (
            self.skipped_words,
            self.requeued_words,
            *(f"lost: version {each.version} ({each.operation})" for each in self.plan.replay.foreign),
            self.missing_words,
            readers_words(self.readers),
            self.beside_words,
        )
        return tuple(each for each in found if each is not None)

    def _repr_html_(self) -> str:
        found = self.difference
        rows = () if found is None else found.shown_rows("only in the old table", "only in the new table")
        return html_table(repr(self)[1:-1], ("row", "values"), rows, self.words)

    def as_json(self) -> dict[str, Any]:
        """Return the rebuild as commands print it."""
        beside = None if self.beside is None else str(self.beside)
        return {**rewind_as_json(self.entity, self.plan, self.difference, self.version), "beside": beside}


def rebuild_table(
    app: App,
    entity: str,
    *,
    from_slice: str | None = None,
    from_time: str | None = None,
    include: Sequence[str] = (),
    is_over_foreign: bool = False,
    is_check: bool = False,
    author: str,
    reason: str,
    interruption: Interruption | None = None,
) -> Rebuilt:
    """Build an entity's table again beside the old one, compare both, and swap the new one in.

    Slices that arrive meanwhile wait. A rebuild of which the process died is continued slice by slice.

    Args:
        app: The project.
        entity: Name or id of the entity.
        from_slice: The first slice that is applied again; what the table held before it stays.
        from_time: The processing time from which on slices are applied again: ISO 8601.
        include: Names of slices that wait, which are applied at the place that their processing times give.
        is_over_foreign: Whether commits that no slice made may be lost.
        is_check: Only compare; what was built stays beside the table, and the next rebuild continues it.
        author: Who does it.
        reason: Why.
        interruption: Shows whether to stop.

    Raises:
        UsageError: No slice was processed, the start is not valid, or a slice to include does not wait.
        LeaseHeld: Another run writes or rewinds the table.
        ItemLocked: A slice of the entity is being processed.
        DataLossError: Commits that no slice made would be lost.
        SliceError: Slices are gone from bronze, or have changed.
        TargetError: A slice cannot be applied under today's declaration; the table is as it was.
    """
    start = _start(app, from_slice, from_time)
    if include and start != RebuildStart():
        raise UsageError(
            "a rebuild that keeps what the table held before can't include slices that wait",
            remedy="Give --include without --from and --from-time: all slices are applied again.",
        )
    found = app.project.entity(entity)
    done = carry_out(
        app,
        found,
        REBUILD,
        lambda context: plan_rebuild(
            context,
            found,
            start,
            included=_waiting(app, found, include),
            strategy=strategy_of_jobs(app.project, found),
            is_over_foreign=is_over_foreign,
        ),
        words=f"rebuild of {found.called}",
        facts={"check": is_check, **_facts(from_slice, from_time, include)},
        author=author,
        reason=reason,
        is_only_compared=is_check,
        compares=lambda plan: not plan.missing,
        is_continued=_was_compared(app, found),
        interruption=interruption,
    )
    is_same = done.difference is not None and done.difference.is_none
    beside = side_address(found.places(app.project.lake).silver) if is_check else None
    changed = () if is_same or is_check else readers(app, found)
    return Rebuilt(found.called, done.plan, done.difference, done.version, changed, beside)


def _waiting(app: App, entity: Entity, names: Sequence[str]) -> list[Arriving]:
    """Return slices to be included.

    Raises:
        UsageError: There is no such slice, or it does not wait.
    """
    found = arriving_slices(app, entity, names)
    application = application_of(app.project.name, entity)
    verdicts = {each.name: app.ledger.item(each.item_id).verdict(application) for each in found}
    for name, verdict in verdicts.items():
        if verdict is not Verdict.READY:
            raise UsageError(
                f"{entity.called}/{name} does not wait to be processed: it is {verdict.value}",
                remedy=Phrase(Command("plan", entity.called), " shows what is due, and what can be decided."),
            )
    return found


def ended_rebuild(
    app: App,
    entity: str,
    *,
    from_slice: str | None = None,
    from_time: str | None = None,
    include: Sequence[str] = (),
    author: str,
) -> Run | None:
    """Return the run that did the same rebuild, if its process died before it was recorded: it is now.

    Only one that put slices in their place is returned, as they do not wait any more. Others may be done
    again under a declaration that has changed since.
    """
    facts = {**_facts(from_slice, from_time, include), "check": False}
    ended = settled(app, app.project.entity(entity), REBUILD, facts, author=author)
    return ended if include else None


def _facts(from_slice: str | None, from_time: str | None, include: Sequence[str]) -> dict[str, Any]:
    """Return what tells a rebuild from others of the same table, as the history has it."""
    return {"from": from_slice, "from-time": from_time, "include": list(include) or None}


def _was_compared(app: App, entity: Entity) -> bool:
    """Return whether the last rebuild of a table was a comparison that told what it found."""
    runs = app.journal.runs(RECENT, project=app.project.name)
    last = next((run for run in runs if run.job == f"rebuild {entity.called}"), None)
    return last is not None and last.status == Status.SUCCESS and bool(last.facts.get("check"))


def _start(app: App, from_slice: str | None, from_time: str | None) -> RebuildStart:
    if from_slice is not None and from_time is not None:
        raise UsageError("both a slice and a time are given to start from", remedy="Give one of them.")
    if from_time is None:
        return RebuildStart(slice=from_slice)
    time = parse_instant_in(from_time, app.project.lake.zone)
    if time is None:
        raise UsageError(
            f"{from_time!r} is not a time in ISO 8601", remedy="Write it such as 2024-05-01T06:00:00."
        )
    return RebuildStart(time=time)
