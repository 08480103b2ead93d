"""Undo a slice: the table is as if it had never been processed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import read_table
from lakewright.lake.paths import local_path
from lakewright.manifest.lock import command
from lakewright.notebook import html_table
from lakewright.run.execute import Interruption
from lakewright.slices.discover import called_name
from lakewright.slices.rewind.difference import TableDifference, compare_rows
from lakewright.slices.rewind.plan_undo import UndoPlan, check_recorded, plan_undo
from lakewright.spec.words import counted, first_of
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.history import UNDO
from lakewright.usecases.readers import readers, readers_words
from lakewright.usecases.rewinding import (
    carry_out,
    check_settled,
    rewind_as_json,
    rewind_context,
    settled,
    skipped_words,
)

if TYPE_CHECKING:
    from lakewright.manifest.journal import Run
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["Undone", "ended_undo", "preview_undo", "undo_slice"]

MOST_NAMED = 10


TOLD_AGAIN = Phrase(Command("status"), " and the plan of its job name what processes it in its place")


@dataclass(frozen=True, slots=True, repr=False)
class Undone:
    """An undo, planned or done.

    Attributes:
        entity: Name of the entity.
        plan: What it does.
        difference: The rows that change; None if they were not compared.
        version: The table's version after; None if the undo was only planned.
        readers: The targets that are built from the table, if it changes.
        told_again: What tells how the slice is processed again, as the end of a sentence.
    """

    entity: str
    plan: UndoPlan
    difference: TableDifference | None = None
    version: int | None = None
    readers: tuple[str, ...] = ()
    told_again: str = TOLD_AGAIN

    @property
    def table_words(self) -> str:
        """What happens to the table."""
        replay = self.plan.replay
        if not replay.changes_table:
            return "it changed nothing: the table stays as it is"
        names = first_of(replay.names, MOST_NAMED)
        if replay.base is None and replay.slices:
            return f"the table is built again from {counted(len(replay.slices), 'slice')}: {names}"
        if replay.base is None:
            return "there is no version before it: the table becomes empty"
        again = f", then {names} again" if names else ""
        return f"the table goes from version {replay.state.version} back to version {replay.base}{again}"

    @property
    def uncompared_words(self) -> str | None:
        """Why a preview compares no rows; None if they can be compared, or the undo is done."""
        if not self.plan.replay.changes_table or self.version is not None or _is_comparable(self.plan):
            return None
        return "no rows are compared: no version shows what it changed by itself"

    @property
    def repeated_words(self) -> str | None:
        """Which slices are applied once although they were processed more than once; None for none."""
        names = self.plan.repeated
        if not names:
            return None
        verb = "was" if len(names) == 1 else "were"
        return f"{first_of(names, MOST_NAMED)} {verb} processed more than once: each slice is applied once"

    @property
    def skipped_words(self) -> str | None:
        """Which other slices leave the table because they were skipped; None for none."""
        return skipped_words(self.plan.replay.skipped_names, "the table then")

    @property
    def slices_words(self) -> str:
        """What happens to the slice, and those after it, from then on."""
        plan = self.plan
        if not plan.is_requeued:
            return f"{plan.slice} is skipped"
        names = plan.requeued
        return f"{first_of(names, MOST_NAMED)} {'is' if len(names) == 1 else 'are'} ready for the next run"

    @property
    def again_words(self) -> str | None:
        """What takes an undone slice again; None if it is ready, or the undo is only planned."""
        if self.plan.is_requeued or self.version is None:
            return None
        return Phrase("once its file is corrected, ", self.told_again)

    @property
    def lost_words(self) -> tuple[str, ...]:
        """The commits that are lost."""
        return tuple(
            f"version {commit.version} ({commit.operation}) of another writer"
            for commit in self.plan.replay.foreign
        )

    def __repr__(self) -> str:
        done = "planned" if self.version is None else f"done by version {self.version}"
        changed = "" if self.difference is None else f": {self.difference.text}"
        return f"<Undone {self.entity}/{self.plan.slice} {done}{changed}>"

    @property
    def words(self) -> tuple[str, ...]:
        """All that the undo does, and what becomes of it."""
        found = (
            self.table_words,
            self.repeated_words,
            self.slices_words,
            self.again_words,
            self.skipped_words,
            *(f"lost: {words}" for words in self.lost_words),
            readers_words(self.readers),
            self.uncompared_words,
        )
        return tuple(each for each in found if each is not None)

    def _repr_html_(self) -> str:
        found = self.difference
        rows = () if found is None else found.shown_rows("goes", "comes back")
        return html_table(repr(self)[1:-1], ("row", "values"), rows, self.words)

    def as_json(self) -> dict[str, Any]:
        """Return the undo as commands print it."""
        return rewind_as_json(self.entity, self.plan, self.difference, self.version)


def preview_undo(
    app: App,
    entity: str,
    slice: str,
    *,
    is_requeued: bool = False,
    is_over_foreign: bool = False,
    with_rows: bool = True,
) -> Undone:
    """Return what undoing a slice would change, with some of the rows; nothing is written.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice.
        is_requeued: Whether the slice, and those after it, are to be processed again.
        is_over_foreign: Whether commits of other writers may be lost.
        with_rows: Whether rows are compared, for which Spark is started.

    Raises:
        UsageError: The slice is not in the table, or an earlier rewind is not recorded yet.
        LeaseHeld: Another rewind of the table goes on.
        DataLossError: Commits of other writers, or files of old versions, stand against it.
        SliceError: Slices that must be applied again are gone from bronze, or have changed.
    """
    found = app.project.entity(entity)
    check_settled(app, found)
    context = rewind_context(app, found)
    plan = plan_undo(context, found, slice, is_requeued=is_requeued, is_over_foreign=is_over_foreign)
    difference = _difference(context, found, plan) if with_rows else None
    return Undone(found.called, plan, difference, readers=_readers(app, found, plan))


def ended_undo(app: App, entity: str, slice: str, *, is_requeued: bool, author: str) -> Run | None:
    """Return the run that did the same undo, if its process died before it was recorded: it is now."""
    facts = {"slice": slice, "requeue": is_requeued}
    return settled(app, app.project.entity(entity), UNDO, facts, author=author)


def _is_comparable(plan: UndoPlan) -> bool:
    """Return whether versions of the table show what an undo changes, or its slice by itself."""
    return plan.replay.changes_table and not (plan.replay.slices and plan.version is None)


def _difference(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> TableDifference | None:
    """Return the rows that an undo changes, if versions of the table have them already.

    If later slices are applied again, these are the rows that the slice changed by itself.
    """
    if not _is_comparable(plan):
        return None
    lake, replay = context.lake, plan.replay
    silver, session = entity.places(lake.settings).silver, strict_session(lake)
    before = read_table(session, silver, plan.version if replay.slices else replay.state.version)
    after = before.limit(0) if replay.base is None else read_table(session, silver, replay.base)
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    return compare_rows(before, after, without=(system.key, system.hash), seen=system.last_seen)


def undo_slice(
    app: App,
    entity: str,
    slice: str,
    *,
    is_requeued: bool = False,
    is_over_foreign: bool = False,
    author: str,
    reason: str,
    interruption: Interruption | None = None,
) -> Undone:
    """Undo a slice: put the table back by one commit, and record it in the manifest.

    An undo of which the process died is continued: if its commit landed, only the records are made.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice.
        is_requeued: Whether the slice, and those after it, are processed again by the next run; otherwise
            the slice is skipped. Slices before it in the same commit are applied again.
        is_over_foreign: Whether commits of other writers may be lost.
        author: Who does it.
        reason: Why.
        interruption: Shows whether to stop.

    Raises:
        UsageError: The slice is not in the table.
        LeaseHeld: Another run writes or rewinds the table.
        ItemLocked: A slice of the entity is being processed.
        DataLossError: Commits of other writers, or files of old versions, stand against it.
        SliceError: Slices that must be applied again are gone from bronze, or have changed.
    """
    found = app.project.entity(entity)
    app.make_store()
    check_recorded(rewind_context(app, found, author=author), found, slice)
    done = carry_out(
        app,
        found,
        UNDO,
        lambda context: plan_undo(
            context, found, slice, is_requeued=is_requeued, is_over_foreign=is_over_foreign
        ),
        words=f"undo of {slice} of {found.called}",
        facts={"slice": slice, "requeue": is_requeued},
        author=author,
        reason=reason,
        interruption=interruption,
    )
    told_again = _told_again(app, found, slice)
    readers_now = _readers(app, found, done.plan)
    return Undone(found.called, done.plan, version=done.version, readers=readers_now, told_again=told_again)


def _told_again(app: App, entity: Entity, name: str) -> str:
    """Return what tells how an undone slice is processed again once it was corrected."""
    if entity.settings.changed_slices == "ignore":
        return Phrase(command("unskip", called_name(entity.called, name)), " makes it ready again")
    if local_path(entity.places(app.project.lake).bronze) is None:
        return "the plan of its job names what processes it in its place"
    return TOLD_AGAIN


def _readers(app: App, entity: Entity, plan: UndoPlan) -> tuple[str, ...]:
    """Return the targets that are built from the table; none if it stays as it is."""
    return readers(app, entity) if plan.replay.changes_table else ()
