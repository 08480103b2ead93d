"""Tables that only a rebuild makes true again, or that others wrote to, as their logs show it, without Spark.

Tables in object stores are looked at together, for a bounded time. What was not looked at is named. Of the
manifest, only whether a slice was processed into a table that does not exist, or that another program has
made, is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import observe_without_spark
from lakewright.lake.paths import local_path
from lakewright.slices.application import entity_of
from lakewright.slices.lost_table import commits_of_others, lost_table_error, older_table_error, others_fault
from lakewright.slices.moved_lake import former_name_error
from lakewright.slices.other_runs import processing_jobs
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.strategies.compatibility import check_table_compatible
from lakewright.strategies.outdated import narrowed_reasons, outdated_parts, rebuild_command
from lakewright.strategies.table_properties import STRATEGY_PROPERTY
from lakewright.usecases.damage.remote_looks import SECONDS, look_within
from lakewright.usecases.placed import chain_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.commit import Commit
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.project import Project

__all__ = ["DueRebuild", "RebuildStatus", "Unseen", "due_rebuilds"]

_ONLY_SPARK = Phrase("only Spark can read the table, which ", Command("plan"), " and a run do")


@dataclass(frozen=True, slots=True)
class DueRebuild:
    """A table that no longer is as its entity's declaration has it.

    Attributes:
        reason: Why.
        refuses_slices: Whether no slice is processed until it is rebuilt, or the declaration is as it was.
        command: The command that builds it again.
    """

    entity: str
    reason: str
    refuses_slices: bool
    command: Command

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "entity": self.entity,
            "reason": self.reason,
            "refuses_slices": self.refuses_slices,
            "do": self.command,
        }


@dataclass(frozen=True, slots=True)
class Unseen:
    """A table that was not looked at.

    Attributes:
        why: Why not.
    """

    entity: str
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {"entity": self.entity, "why": self.why}


@dataclass(frozen=True, slots=True)
class RebuildStatus:
    """The tables of a project that a rebuild would make as they are declared now.

    Attributes:
        unseen: The tables of which that is not known.
        rows_changed: That other programs have changed rows of tables, each with the command to type.
    """

    due: tuple[DueRebuild, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    rows_changed: tuple[Fault, ...] = ()

    def unseen_beside(self, damaged: Iterable[Fault]) -> tuple[Unseen, ...]:
        """Return the tables that are not known without those that are told to be damaged."""
        told = {fault.message for fault in damaged}
        return tuple(each for each in self.unseen if each.why not in told)

    def rows_changed_beside(self, told: Collection[str]) -> tuple[Fault, ...]:
        """Return the faults of changed rows without those whose message was told already."""
        return tuple(each for each in self.rows_changed if each.message not in told)


def due_rebuilds(app: App, seconds: float = SECONDS) -> RebuildStatus:
    """Return the tables of a project that a rebuild would make as they are declared now.

    Args:
        app: The project.
        seconds: How long tables in object stores are waited for.
    """
    due: list[DueRebuild] = []
    unseen: list[Unseen] = []
    rows_changed: list[Fault] = []
    looks = dict(_looks(app, app.project.entities, seconds))
    seen_now = {name: seen for name, seen in looks.items() if isinstance(seen, _Look)}
    not_ours = [name for name, seen in seen_now.items() if not _is_ours(seen.state)]
    processed = dict(_processed(app, not_ours))
    # A run that goes on meanwhile makes the table first, and then records its slice. So a table is lost only
    # if it is still missing, or still another program's, after its slice was found.
    looks |= _looks(app, processed, seconds)
    for name, seen in looks.items():
        entity = app.project.entities[name]
        if isinstance(seen, str):
            unseen.append(Unseen(entity.called, seen))
        elif not seen.state.exists:
            due += _lost(app, entity, processed.get(name))
        elif _is_ours(seen.state):
            due += _older(app, name, seen, seconds)
            refused = list(_refused(entity, seen.state))
            due += [*refused, *_of(app, entity, seen.state)]
            rows_changed += _changed_by_others(app, entity, seen, is_refused=bool(refused))
        elif name in processed:
            # Without a slice, it is a table of another program, which no slices could make again.
            refused = [] if is_adoptable(entity, seen.state) else list(_refused(entity, seen.state))
            due += refused
            if not refused:  # the next slice replaces all of its rows, or goes on with them
                rows_changed += _changed_by_others(app, entity, seen, is_refused=False)
    return RebuildStatus(tuple(due), tuple(unseen), tuple(rows_changed))


@dataclass(frozen=True, slots=True)
class _Look:
    """A table as its log shows it.

    Attributes:
        others: The commits of other programs that changed rows since Lakewright's last commit, oldest first.
        last: The number of Lakewright's last commit; None if there is none.
    """

    state: TableState
    others: tuple[Commit, ...] = ()
    last: int | None = None


def _looks(app: App, names: Collection[str], seconds: float) -> Iterator[tuple[str, _Look | str]]:
    """Yield the names of entities that are processed, each with its table or with why that is not known."""
    remote: dict[str, Callable[[], _Look | str]] = {}
    found: dict[str, _Look | str] = {}
    for name in names:
        entity = app.project.entities[name]
        if not entity.enabled:
            continue
        chain = chain_of(app, entity)
        try:
            silver = chain.silver
        except LakewrightError as error:
            found[name] = error.message
            continue
        look = _look_at(chain)
        if silver.location is None or local_path(silver.location) is not None:
            found[name] = look()
        else:
            remote[name] = look
    yield from (found | look_within(remote, seconds)).items()


def _look_at(chain: SliceChain) -> Callable[[], _Look | str]:
    def look() -> _Look | str:
        try:
            state = observe_without_spark(chain.lake, chain.silver)
            if state is None:
                return _ONLY_SPARK
            if not state.exists:
                return _Look(state)
            last = chain.last_number
            return _Look(state, commits_of_others(chain.lake, chain.silver), last)
        except LakewrightError as error:
            return error.message

    return look


def _is_ours(state: TableState) -> bool:
    """Return whether a table exists and Lakewright has made it."""
    return state.exists and STRATEGY_PROPERTY in state.properties


def _processed(app: App, names: Collection[str]) -> Iterator[tuple[str, Item]]:
    """Yield the names of entities of which a slice counts as processed, each with such a slice."""
    for name in names:
        if (found := chain_of(app, app.project.entities[name]).first_processed) is not None:
            yield name, found


def _lost(app: App, entity: Entity, processed: Item | None) -> Iterator[DueRebuild]:
    error = lost_table_error(chain_of(app, entity), processed)
    if error is not None:
        reason = f"{error.message}; if it was moved, bring it back instead of rebuilding it"
        yield DueRebuild(entity.called, reason, True, rebuild_command(entity))


def _older(app: App, name: str, seen: _Look, seconds: float) -> Iterator[DueRebuild]:
    """Yield that a table lacks slices that count as processed, if it still does when it is looked at again.

    A run that goes on meanwhile commits a slice first, and then records it.
    """
    entity = app.project.entities[name]
    chain = chain_of(app, entity)
    error = older_table_error(chain, seen.last)
    again = None if error is None else dict(_looks(app, [name], seconds)).get(name)
    if isinstance(again, _Look):
        error = older_table_error(chain, again.last)
    if error is not None:
        yield DueRebuild(entity.called, error.message, True, rebuild_command(entity))


def _changed_by_others(app: App, entity: Entity, seen: _Look, *, is_refused: bool) -> Iterator[Fault]:
    chain = chain_of(app, entity)
    if chain.first_processed is not None:
        if seen.others:
            yield others_fault(entity, seen.others, is_refused=is_refused)
        return
    if chain.silver.location is None or local_path(chain.silver.location) is None:
        return
    others = (each for standing in app.store.standings() for each in standing.processed)
    former_names = (each for each in others if _may_be_former(app.project, entity, each))
    former = former_name_error(chain, former_names)
    if former is not None:
        yield former.as_fault()


def _may_be_former(project: Project, entity: Entity, application: Application) -> bool:
    """Return whether an application may be an entity's under another name of its own, or of the project."""
    name = entity_of(project.name, application)
    is_undeclared = name is not None and name not in project.entities
    return is_undeclared or application.name.rpartition("/")[2] == entity.name


def _refused(entity: Entity, state: TableState) -> Iterator[DueRebuild]:
    """Yield why the entity cannot continue from a table; over rows of others, only an option rebuilds it."""
    try:
        check_table_compatible(state, entity.strategy, entity, allow_data_loss=False)
    except LakewrightError as error:
        options = () if _is_ours(state) else ("--over-foreign",)
        yield DueRebuild(entity.called, error.message, True, rebuild_command(entity).plus(*options))


def _of(app: App, entity: Entity, state: TableState) -> Iterator[DueRebuild]:
    for part in outdated_parts(state, entity, app.project.lake, jobs=_of_jobs(app, entity)):
        yield DueRebuild(entity.called, part.reason, False, part.command)
    for reason in narrowed_reasons(state, entity):
        told = f"{reason}, or build the table again"
        yield DueRebuild(entity.called, told, False, rebuild_command(entity))


def _of_jobs(app: App, entity: Entity) -> Iterator[Entity]:
    """Yield an entity with the names of each job that processes it."""
    for job, _ in processing_jobs(app.project, entity.called):
        yield entity.within(app.project.job_scope(job), entity.as_declared, entity.called)
