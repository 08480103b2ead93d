"""Undo a slice, or build an entity's table again from its slices: both replay the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import read_table
from lakewright.lake.paths import local_path
from lakewright.manifest.lock import command
from lakewright.manifest.record import parse_instant_in
from lakewright.manifest.verdict import Verdict
from lakewright.notebook import html_table
from lakewright.plan.status import Status
from lakewright.run.execution import Interruption
from lakewright.slices.application import application_of
from lakewright.slices.discovery import called_name
from lakewright.slices.other_runs import strategy_of_jobs
from lakewright.slices.rewind.difference import TableDifference, compare_tables
from lakewright.slices.rewind.side_table import side_address
from lakewright.slices.rewind.undo_rebuild import (
    RebuildPlan,
    RebuildStart,
    UndoPlan,
    check_recorded,
    plan_rebuild,
    plan_undo,
)
from lakewright.spec.words import counted, first_of
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.declared_nodes import readers
from lakewright.usecases.history import REBUILD, UNDO
from lakewright.usecases.rewinding import (
    Replaying,
    arriving_slices,
    carry_out,
    check_settled,
    rewind_context,
    settled,
)

if TYPE_CHECKING:
    from lakewright.manifest.journal import Run
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.plan import Arriving
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address


MOST_NAMED = 10

MOST_READERS = 3

RECENT = 200
"""The number of latest runs among which the last rebuild of a table is looked for."""

PROCESSED_AGAIN = Phrase(Command("status"), " and the plan of its job name what processes it in its place")

P = TypeVar("P", bound=Replaying)


@dataclass(frozen=True, slots=True, repr=False)
class Rewound(Generic[P]):
    """A table that was replayed, or would be.

    Attributes:
        entity: Name of the entity.
        plan: What it does.
        difference: The rows that change; None if they were not compared.
        version: The table's version after; None if the table is as it was.
        readers: The targets that are built from the table, if it changes.
    """

    entity: str
    plan: P
    difference: TableDifference | None = None
    version: int | None = None
    readers: tuple[str, ...] = ()

    only_seen: ClassVar[str]
    """How a replay that was not done ended."""

    sides: ClassVar[tuple[str, str]]
    """What the notebook says of a row that is only there before, and of one that is only there after."""

    table: ClassVar[str]
    """The table that the replay makes, in a sentence."""

    @property
    def called(self) -> str:
        """What was replayed."""
        return self.entity

    @property
    def skipped_words(self) -> str | None:
        """Which slices are left out because they were skipped; None for none."""
        names = self.plan.replay.skipped_names
        was, its = ("was", "its") if len(names) == 1 else ("were", "their")
        said = f"{first_of(names, MOST_NAMED)} {was} skipped: {self.table} has none of {its} changes"
        return said if names else None

    @property
    def words(self) -> tuple[str, ...]:
        """All that it does, and what becomes of it."""
        return tuple(each for each in self._words() if each is not None)

    def _words(self) -> Iterator[str | None]:
        """Yield the sentences in the order in which they are shown; None for what does not apply."""
        yield self.skipped_words

    @property
    def readers_words(self) -> str | None:
        """What is to be built again, as it is built from the table; None if nothing is."""
        if not self.readers:
            return None
        built = f"built from it: {first_of(self.readers, MOST_READERS)}; "
        return Phrase(built, Command("plan"), " names what is stale")

    def __repr__(self) -> str:
        done = self.only_seen if self.version is None else f"done by version {self.version}"
        changed = "" if self.difference is None else f": {self.difference.text}"
        return f"<{type(self).__name__} {self.called} {done}{changed}>"

    def _repr_html_(self) -> str:
        found = self.difference
        rows = () if found is None else found.shown_rows(*self.sides)
        return html_table(repr(self)[1:-1], ("row", "values"), rows, self.words)

    def as_json(self) -> dict[str, Any]:
        """Return it as commands print it."""
        return {
            "entity": self.entity,
            **self.plan.as_json(),
            "difference": None if self.difference is None else self.difference.as_json(),
            "done": self.version is not None,
            "version_after": self.version,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Undone(Rewound[UndoPlan]):
    """An undo, planned or done.

    Attributes:
        processed_again: What shows how the slice is processed again, as the end of a sentence.
    """

    processed_again: str = PROCESSED_AGAIN

    only_seen: ClassVar[str] = "planned"
    sides: ClassVar[tuple[str, str]] = ("goes", "comes back")
    table: ClassVar[str] = "the table then"

    @property
    def called(self) -> str:
        """The slice, with its entity."""
        return f"{self.entity}/{self.plan.slice}"

    def _words(self) -> Iterator[str | None]:
        plan, replay = self.plan, self.plan.replay
        yield self._table_words
        if names := plan.repeated:
            verb = "was" if len(names) == 1 else "were"
            yield f"{first_of(names, MOST_NAMED)} {verb} processed more than once: each slice is applied once"
        if plan.is_requeued:
            are = "is" if len(plan.requeued) == 1 else "are"
            yield f"{first_of(plan.requeued, MOST_NAMED)} {are} ready for the next run"
        else:
            yield f"{plan.slice} is skipped"
            if self.version is not None:
                yield Phrase("once its file is corrected, ", self.processed_again)
        yield self.skipped_words
        yield from self.lost_words
        yield self.readers_words
        if replay.changes_table and self.version is None and not _is_comparable(plan):
            yield "no rows are compared: no version shows what it changed by itself"

    @property
    def lost_words(self) -> tuple[str, ...]:
        """The commits that are lost."""
        lost = self.plan.replay.foreign
        return tuple(f"lost: version {each.version} ({each.operation}) of another writer" for each in lost)

    @property
    def _table_words(self) -> str:
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


@dataclass(frozen=True, slots=True, repr=False)
class Rebuilt(Rewound[RebuildPlan]):
    """A table that was built beside the old one, and perhaps swapped in.

    Attributes:
        beside: Where the table is that was not swapped in; None if it was.
    """

    beside: Address | None = None

    only_seen: ClassVar[str] = "checked"
    sides: ClassVar[tuple[str, str]] = ("only in the old table", "only in the new table")
    table: ClassVar[str] = "the new table"

    def _words(self) -> Iterator[str | None]:
        yield self.skipped_words
        if names := self.plan.requeued:
            was, it, its = ("was", "it", "its") if len(names) == 1 else ("were", "them", "their")
            yield Phrase(
                f"{first_of(names, MOST_NAMED)} {was} requeued and left out, as the table has no "
                f"commit of {it}: the next run processes {it}, or ",
                Command("rebuild", self.entity, *(word for name in names for word in ("--include", name))),
                f" applies {it} in {its} place",
            )
        for commit in self.plan.replay.foreign:
            yield f"lost: version {commit.version} ({commit.operation})"
        if gone := self.plan.missing:
            are = "is" if len(gone) == 1 else "are"
            yield (
                f"{counted(len(gone), 'file')} of the old table {are} gone, such as {gone[0]}: its rows "
                "can't be read, and were not compared"
            )
        yield self.readers_words
        if self.beside is not None:
            removal = "delete that folder" if self.beside.name is None else f"DROP TABLE {self.beside.sql}"
            yield (
                f"the new table stays in {self.beside}: a rebuild of the same slices uses it, any other "
                f"removes it; to remove it now, {removal}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the rebuild as commands print it."""
        # A dataclass with slots has no `super()` without arguments.
        return {**Rewound.as_json(self), "beside": None if self.beside is None else str(self.beside)}


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
    return compare_tables(before, after, system)


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
    processed_again = _processed_again(app, found, slice)
    readers_now = _readers(app, found, done.plan)
    return Undone(
        found.called, done.plan, version=done.version, readers=readers_now, processed_again=processed_again
    )


def _processed_again(app: App, entity: Entity, name: str) -> str:
    """Return what shows how an undone slice is processed again once it was corrected."""
    if entity.settings.changed_slices == "keep":
        return Phrase(command("unskip", called_name(entity.called, name)), " makes it ready again")
    if local_path(entity.places(app.project.lake).slices.folder) is None:
        return "the plan of its job names what processes it in its place"
    return PROCESSED_AGAIN


def _readers(app: App, entity: Entity, plan: UndoPlan) -> tuple[str, ...]:
    """Return the targets that are built from the table; none if it stays as it is."""
    return readers(app, entity) if plan.replay.changes_table else ()


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
    """Return what distinguishes a rebuild from others of the same table, as the history has it."""
    return {"from": from_slice, "from-time": from_time, "include": list(include) or None}


def _was_compared(app: App, entity: Entity) -> bool:
    """Return whether the last rebuild of a table was a comparison that reported what it found."""
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
