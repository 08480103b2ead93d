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
from lakewright.slices.rewind.execution import beside_undo, check_each_once, rewind_table
from lakewright.slices.rewind.plan_undo import UndoPlan, check_recorded, plan_undo
from lakewright.slices.rewind.settle import settle_rewind
from lakewright.spec.words import counted, first_of
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.command_lineage import told_command
from lakewright.usecases.readers import readers, readers_words
from lakewright.usecases.rewinding import (
    announced,
    check_of,
    check_settled,
    rewind_as_json,
    rewind_context,
    settled,
    skipped_words,
    under_lease,
)
from lakewright.usecases.session_check import check_session

if TYPE_CHECKING:
    from lakewright.manifest.journal import Run
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.side_table import Beside
    from lakewright.spec.models.entity import Entity

__all__ = ["Undone", "ended_undo", "preview_undo", "undo_slice"]

MOST_NAMED = 10

PHASE = "UNDO"
"""Phase under which an undo is listed in the history of runs."""


TOLD_AGAIN = Phrase(Command("status"), " and the plan of its job name what processes it in its place")


@dataclass(frozen=True, slots=True, repr=False)
class Undone:
    """An undo, planned or done.

    Attributes:
        entity: Name of the entity.
        plan: What it does.
        difference: The rows that change; None if they were not compared.
        version: The table's version after; None if the undo was only planned.
        beside: What an earlier rewind left beside the table, and what becomes of it; None for nothing.
        readers: The targets that are built from the table, if it changes.
        told_again: What tells how the slice is processed again, as the end of a sentence.
    """

    entity: str
    plan: UndoPlan
    difference: TableDifference | None = None
    version: int | None = None
    beside: Beside | None = None
    readers: tuple[str, ...] = ()
    told_again: str = TOLD_AGAIN

    @property
    def table_words(self) -> str:
        """What happens to the table."""
        plan = self.plan
        if plan.undone is None:
            return "it changed nothing: the table stays as it is"
        names = [each.name for each in plan.replayed]
        listed_names = first_of(names, MOST_NAMED)
        if plan.base is None and names:
            return f"the table is built again from {counted(len(names), 'slice')}: {listed_names}"
        if plan.base is None:
            is_first = plan.since[0].item_id == plan.item.item_id
            why = "it was the first" if is_first else "there is no version before it"
            return f"{why}: the table becomes empty"
        again = f", then {listed_names} again" if names else ""
        return f"the table goes from version {plan.state.version} back to version {plan.base}{again}"

    @property
    def uncompared_words(self) -> str | None:
        """Why a preview compares no rows; None if they can be compared, or the undo is done."""
        undone = self.plan.undone
        if undone is None or self.version is not None or _is_comparable(self.plan):
            return None
        return f"no rows are compared: {self.plan.unseen}"

    @property
    def repeated_words(self) -> str | None:
        """Which slices will be applied once although they were processed more than once; None for none."""
        if not self.plan.is_checked or self.version is not None:
            return None
        names = self.plan.repeated
        verb = "was" if len(names) == 1 else "were"
        return (
            f"{first_of(names, MOST_NAMED)} {verb} processed more than once: each slice is applied once, and "
            "the undo ends without a change if that alone gives other rows than the table has"
        )

    @property
    def skipped_words(self) -> str | None:
        """Which other slices leave the table because they were skipped; None for none."""
        return skipped_words(self.plan.skipped_names, "the table then")

    @property
    def slices_words(self) -> str:
        """What happens to the slice, and those after it, from then on."""
        plan = self.plan
        if not plan.is_requeued:
            return f"{plan.slice} is skipped"
        names = list(dict.fromkeys(each.name for each in plan.requeued))
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
            f"version {commit.version} ({commit.operation}) of another writer" for commit in self.plan.foreign
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
            None if self.beside is None else self.beside.text,
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
        return {
            **rewind_as_json(self.entity, self.plan, self.difference, self.version),
            "beside": None if self.beside is None else self.beside.text,
        }


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
    beside = beside_undo(context, found, plan)
    difference = _difference(context, found, plan) if with_rows else None
    return Undone(found.called, plan, difference, beside=beside, readers=_readers(app, found, plan))


def ended_undo(app: App, entity: str, slice: str, *, is_requeued: bool, author: str) -> Run | None:
    """Return the run that did the same undo, if its process died before it was recorded: it is now."""
    facts = {"slice": slice, "requeue": is_requeued}
    return settled(app, app.project.entity(entity), PHASE, facts, author=author)


def _is_comparable(plan: UndoPlan) -> bool:
    """Return whether versions of the table show what an undo changes, or its slice by itself."""
    return plan.undone is not None and not (plan.replayed and plan.version is None)


def _difference(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> TableDifference | None:
    """Return the rows that an undo changes, if versions of the table have them already.

    If later slices are applied again, these are the rows that the slice changed by itself.
    """
    if not _is_comparable(plan):
        return None
    lake = context.lake
    silver, session = entity.places(lake.settings).silver, strict_session(lake)
    before = read_table(session, silver, plan.version if plan.replayed else plan.state.version)
    after = before.limit(0) if plan.base is None else read_table(session, silver, plan.base)
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
        DataLossError: Commits of other writers, files of old versions, or former contents of slices that were
            processed again stand against it.
        SliceError: Slices that must be applied again are gone from bronze, or have changed.
    """
    found = app.project.entity(entity)
    check_session(app)
    app.make_store()
    context = rewind_context(app, found, interruption, author=author)
    settle_rewind(context, found)
    check_recorded(context, found, slice)
    words = f"undo of {slice} of {found.called}"
    facts = {"slice": slice, "requeue": is_requeued, "author": author, "reason": reason}
    with told_command(app, "undo", found), under_lease(app, found, PHASE, facts) as attempt:
        check = check_of(app, interruption)
        plan = plan_undo(context, found, slice, is_requeued=is_requeued, is_over_foreign=is_over_foreign)
        check_each_once(context, found, plan, check=check)
        with announced(app, context, found, words, attempt) as rewind:
            beside = beside_undo(context, found, plan)
            told = f"{words} by {author}: {reason}"
            version = rewind_table(context, found, plan, rewind, reason=told, check=check)
    return Undone(
        found.called,
        plan,
        version=version,
        beside=beside,
        readers=_readers(app, found, plan),
        told_again=_told_again(app, found, slice),
    )


def _told_again(app: App, entity: Entity, name: str) -> str:
    """Return what tells how an undone slice is processed again once it was corrected."""
    if entity.settings.changed_slices == "ignore":
        return Phrase(command("unskip", called_name(entity.called, name)), " makes it ready again")
    if local_path(entity.places(app.project.lake).bronze) is None:
        return "the plan of its job names what processes it in its place"
    return TOLD_AGAIN


def _readers(app: App, entity: Entity, plan: UndoPlan) -> tuple[str, ...]:
    """Return the targets that are built from the table; none if it stays as it is."""
    return () if plan.undone is None else readers(app, entity)
