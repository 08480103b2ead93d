"""Diagnose one entity: its slices, its silver table and the rows of that; and repair the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.doctor import plan_repair as planning
from lakewright.doctor import repair as repairing
from lakewright.doctor.examine import Diagnosis, examine
from lakewright.doctor.plan_repair import RepairPlan
from lakewright.errors import LakewrightError, StorageUnavailable
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import missing_files, observe_table
from lakewright.lake.spark_errors import query_failure
from lakewright.manifest.store import Query
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.slices.deviations import Deviations, is_folder_missed
from lakewright.slices.discover import list_bronze
from lakewright.slices.lost_table import find_older_table, lost_table_error
from lakewright.slices.processed import without_continued
from lakewright.slices.rewind.side_table import REHEARSAL, left_beside, side_address
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted
from lakewright.strategies.outdated import rebuild_command
from lakewright.target_contexts import target_contexts
from lakewright.targets.context import Context, RunOptions
from lakewright.targets.entity.table_rules import KEY_ALIKE
from lakewright.usecases.checks import Check, guarded, told_once
from lakewright.usecases.items import Rows, entity_application
from lakewright.usecases.placed import chain_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.commit import Commit

__all__ = ["EntityDiagnosis", "diagnose_entity", "plan_repair", "repair_table"]


@dataclass(frozen=True, slots=True)
class EntityDiagnosis:
    """The checks of an entity and its table.

    Attributes:
        diagnosis: The violations found in the rows; None if the rows could not be read.
    """

    checks: tuple[Check, ...]
    diagnosis: Diagnosis | None


def diagnose_entity(app: App, entity: str) -> EntityDiagnosis:
    """Check an entity's slices, the rows of its silver table, and the table's commits; nothing is written.

    Raises:
        SpecError: There is no such entity.
    """
    found = app.project.entity(entity)
    checks = tuple(_entity_checks(app, found))
    try:
        diagnosis = examine(_context(app), found)
    except Exception as error:
        failure = error if isinstance(error, LakewrightError) else query_failure(error, "in the checks")
        if failure is None:
            raise
        failed = Check("rows", False, failure.message, failure.remedy)
        return EntityDiagnosis(tuple(told_once((*checks, failed))), None)
    return EntityDiagnosis((*checks, *_row_checks(found, diagnosis)), diagnosis)


def plan_repair(app: App, entity: str, permissions: Permissions = NO_PERMISSIONS) -> RepairPlan | None:
    """Return the repair of an entity's silver table, or None if every rule holds; nothing is written.

    Raises:
        SpecError: There is no such entity.
    """
    return planning.plan_repair(_context(app, permissions), app.project.entity(entity))


def repair_table(app: App, entity: str, planned: RepairPlan, *, author: str, reason: str) -> int | None:
    """Make a planned repair and return the table's new version; the repair is recorded in the history.

    Raises:
        LeaseHeld: A run writes to the table.
        CommitConflict: The table has changed since the repair was planned; nothing was written.
    """
    found = app.project.entity(entity)
    return repairing.repair(_context(app), found, planned, app.journal, author=author, reason=reason)


def _context(app: App, permissions: Permissions = NO_PERMISSIONS) -> Context:
    return target_contexts(app, RunOptions(permissions=permissions))(app.workspace)


def _entity_checks(app: App, entity: Entity) -> Iterator[Check]:
    """Check an entity's slices, the locks or failures that hold them back, and its silver table."""
    remedy = "Set enabled: true where it is declared."
    yield Check(
        "entity",
        entity.enabled,
        f"{entity.called} ({entity.strategy.value})",
        None if entity.enabled else remedy,
    )
    yield guarded("bronze", lambda: _bronze(app, entity))
    yield from _held_slices(app, entity)
    yield guarded("silver", lambda: _silver(app, entity))
    yield from _beside(app, entity)


def _beside(app: App, entity: Entity) -> Iterator[Check]:
    """Say that a rebuild, an undo or a rehearsal has left a table beside the entity's own."""
    try:
        silver = entity.places(app.project.lake).silver
        rehearsal = side_address(silver, REHEARSAL)
        left = left_beside(app.lake, entity)
        is_rehearsal_left = observe_table(app.lake, rehearsal).exists
    except LakewrightError:
        return
    if left is not None:
        yield Check("beside", None, left.words, Phrase(Phrase(left.advice).capitalized(), "."))
    if is_rehearsal_left:
        said = f"{rehearsal} belongs to a rehearsal that is running, or was killed"
        yield Check("beside", None, said, "The next rehearsal of the entity removes what is left.")


def _row_checks(entity: Entity, diagnosis: Diagnosis) -> Iterator[Check]:
    """Return checks of the rows of an entity's table, and of who wrote them."""
    repair = Phrase(Command("doctor", entity.called, "--repair"), " shows what would repair it.")
    convert = Phrase(
        rebuild_command(entity),
        " makes one record of them: primary keys are then of the values after the cast.",
    )
    for finding in diagnosis.findings:
        remedy = convert if finding.rule == KEY_ALIKE else repair
        said = f"{finding.count:,} {finding.words}: {_samples(finding.samples, finding.count)}"
        yield Check("rows", False, said + _since(diagnosis.since.get(finding.rule)), remedy)
    if diagnosis.is_sound and diagnosis.version is not None:
        yield Check("rows", True, f"every rule holds in version {diagnosis.version}")
    if diagnosis.foreign_commits:
        last = diagnosis.foreign_commits[-1]
        count = counted(len(diagnosis.foreign_commits), "commit")
        told = f"{count} not by Lakewright changed rows, the last: {_told(last)}"
        again = Phrase(rebuild_command(entity).plus("--over-foreign"), " makes the table again without them.")
        yield Check("writers", None, told, again)


def _samples(samples: Sequence[Mapping[str, Any]], count: int) -> str:
    shown = "; ".join(", ".join(f"{key}={value}" for key, value in one.items()) for one in samples)
    return shown + (" …" if count > len(samples) else "")


def _since(commit: Commit | None) -> str:
    return "" if commit is None else f"; since {_told(commit)}"


def _told(commit: Commit) -> str:
    at = f" of {commit.at:%Y-%m-%d %H:%M}" if commit.at is not None else ""
    names = [str(content["item"]).rpartition("/")[2] for content in commit.items]
    whose = f", slice {names[0]}" if names else ""
    if len(names) > 1:
        whose = f", slices {names[0]} to {names[-1]}"
    return f"version {commit.version}{at} ({commit.operation}{whose})"


def _bronze(app: App, entity: Entity) -> str:
    chain = chain_of(app, entity)
    place = chain.bronze
    listing = list_bronze(place, app.lake)
    if not listing.exists and is_folder_missed(chain):
        lost = Deviations(entity, place, listing, is_lost=True).fault
        if lost is not None:
            raise StorageUnavailable(lost.message, remedy=lost.remedy or "")
    slices = listing.slices
    last = f", the last is {slices[-1].name}" if slices else ""
    return f"{counted(len(slices), 'slice')} in {place}{last}"


def _held_slices(app: App, entity: Entity) -> Iterator[Check]:
    application = entity_application(app, entity.called)
    rows = Rows(app)
    counts: Counter[str] = Counter()
    bronze = entity.places(app.project.lake).bronze
    for item in without_continued(app.store, app.store.select(Query(application=application)), bronze):
        for row in rows.of(item, application):
            counts[row.verdict.value] += 1
            if row.verdict.is_blocking and row.advice:
                yield Check("slice", False, f"{row.slice} is {row.verdict.value}", row.advice)
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
    yield Check(
        "manifest",
        True,
        told or Phrase("has no slice yet; ", Command("manifest", "discover"), " records them"),
    )


def _silver(app: App, entity: Entity) -> str:
    chain = chain_of(app, entity)
    silver = chain.silver
    state = observe_table(app.lake, silver)
    if not state.exists:
        lost = lost_table_error(chain, chain.first_processed)
        if lost is not None:
            raise lost
        return f"{silver} does not exist yet: the first slice creates it"
    older = find_older_table(chain)
    if older is not None:
        raise older
    gone = [] if state.version is None else missing_files(app.lake, silver, state.version)
    if gone:
        files = counted(len(gone), "data file")
        raise StorageUnavailable(
            f"{silver}, version {state.version}, lacks {files}, such as {gone[0]}",
            remedy=Phrase(
                "Bring what is gone back, from a backup if there is one. Otherwise ",
                rebuild_command(entity),
                " builds the table again from its slices.",
            ),
        )
    return f"{silver}, version {state.version}, {counted(len(state.columns), 'column')}"
