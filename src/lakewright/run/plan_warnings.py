"""Warnings of a plan: of rows that a step removes or adds again, of tables and columns that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import observe_table
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.planner import MAY_BE_ADDED
from lakewright.plan.status import Status
from lakewright.plan.step import Added, parameters_text
from lakewright.relations.catalog import ViewRelation
from lakewright.relations.relation import Relation
from lakewright.spec.words import counted, first_of
from lakewright.targets.lease import table_resource
from lakewright.targets.relation import RelationTarget
from lakewright.workspace.query import table_resource as named_resource
from lakewright.workspace.sql_check import DeclaredTables, SqlChecker

if TYPE_CHECKING:
    from lakewright.plan.last_build import LastBuild
    from lakewright.plan.observation import Observation
    from lakewright.plan.outcome import Outcome
    from lakewright.plan.resource import Resource
    from lakewright.plan.step import Step
    from lakewright.run.builds import LastBuilds
    from lakewright.spec.models.places import Address
    from lakewright.spec.project import Project
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace


REMOVED_ROWS = "removed_rows"
"""The code of the notice that a step removes what other instances have built."""

ROWS_ADDED_AGAIN = "rows_added_again"
"""The code of the notice that a target adds rows once more."""

MOST_NAMED = 3


def lost_rows(
    last_builds: LastBuilds,
    instance: tuple[str, Mapping[str, str]],
    provides: Callable[[Phase], Collection[Resource]],
    phase: Phase,
    found: Observation,
) -> Fault | None:
    """Return that a phase removes what other instances have built; None if it removes nothing of them.

    CREATE does so if it makes a table anew; TRUNCATE and DESTROY, if they are for more than one instance.

    Args:
        last_builds: Reports what was built.
        instance: The target, and the parameters of its instance.
        provides: Returns what the target makes or removes in a phase.
        phase: The phase.
        found: The state of its output.
    """
    if found.exists is Answer.NO or not (phase.is_cleanup or found.loses_rows):
        return None
    name, parameters = instance
    lost = last_builds.within(provides(phase))
    others = [
        f"{other} {parameters_text(each)}".strip()
        for other, instances in sorted(lost.items())
        for each in sorted(instances, key=parameters_text)
        if (other, dict(each)) != (name, dict(parameters))
    ]
    if not others:
        return None
    return Fault(
        f"target {name!r}: {phase} removes the rows of {counted(len(others), 'other build')}: "
        f"{first_of(others, MOST_NAMED)}",
        remedy=Phrase("Afterwards, ", Command("plan"), " says which of them are to be built again."),
        code=REMOVED_ROWS,
    )


def rows_added_again(target: Target, parameters: Mapping[str, str], last_build: LastBuild) -> Added | None:
    """Return that a target adds rows which an earlier build has added, or may have; None if it does not.

    A job without parameters adds rows in each of its runs, as that is all that it can do.
    """
    if not last_build.is_unsure and (
        not parameters or not last_build.holds_rows or last_build.begun is not None
    ):
        return None
    rows = f"its rows of {parameters_text(parameters)}" if parameters else "its rows"
    added = f"target {target.name!r} adds {rows} once more: an earlier build has added them"
    unsure = f"target {target.name!r} may add {rows} once more: a build that was cut off may have added them"
    fault = Fault(
        unsure if last_build.is_unsure else added,
        remedy="To have them once, choose the other targets with -t, or empty it first. If they are meant to "
        "come more than once, declare `buildPolicy: ALWAYS` for the target.",
        code=ROWS_ADDED_AGAIN,
    )
    return Added(fault, target.is_built_always)


MISSING_INPUT = "missing_input"
"""The code of the warning."""


def missing_input(target: Target, workspace: Workspace, is_made: Callable[[Resource], bool]) -> Fault | None:
    """Return the warning for a target that is to be built; None if its inputs of silver exist or are made.

    Args:
        target: The target.
        workspace: The workspace of its instance.
        is_made: Returns whether a step of the plan makes a table.
    """
    required = target.requires(workspace, Phase.BUILD)
    if not required:
        return None
    for project, entity, silver in _silver_tables(workspace):
        table = table_resource(silver)
        is_known = table not in required or is_made(table)
        if is_known or silver.location is None or not _is_missing(workspace, silver):
            continue  # only Spark knows the tables of a catalog
        whose, where = "", ""
        if project is not workspace.project:
            whose, where = f" of project {project.name}", f" in {project.basedir}"
        return Fault(
            f"target {target.name!r} reads entity {entity!r}{whose}, which has no silver table, and no step "
            "of this plan makes it",
            remedy=f"Process a slice of the entity first, by a job{where} with its target. Otherwise the "
            "build fails.",
            code=MISSING_INPUT,
        )
    return None


def _silver_tables(workspace: Workspace) -> Iterator[tuple[Project, str, Address]]:
    """Yield the silver tables of the project and of those that it imports, with the entities' names."""
    own = workspace.project
    for project in (own, *own.imports.values()):
        layout = workspace.layout if project is own else project.lake
        for name in project.entities:
            try:
                yield project, name, project.entities[name].places(layout).silver
            except SpecError:
                continue  # it is reported where the entity is used


def _is_missing(workspace: Workspace, silver: Address) -> bool:
    try:
        return observe_table(workspace.lake, silver).exists is False
    except LakewrightError:
        return False


UNKNOWN_COLUMN = "unknown_column"
"""The code of the warning."""


def unknown_column(
    target: Target, workspace: Workspace, phase: Phase, is_created: Callable[[Resource], bool]
) -> Fault | None:
    """Return the warning for a target that creates a view; None if its tables have all columns that it names.

    A table has its columns of today, or those that a step of the plan gives it before.

    Args:
        target: The target.
        workspace: The workspace of its instance.
        phase: CREATE, or BUILD of a view that waited for its tables.
        is_created: Returns whether a step of the plan creates or migrates a table.
    """
    view = target.output(workspace) if isinstance(target, RelationTarget) else None
    if not isinstance(view, ViewRelation):
        return None
    tables = DeclaredTables(workspace)

    def of_table(parts: Sequence[str]) -> Sequence[str] | None:
        found = [each for each in tables.relations(parts) if isinstance(each, Relation)]
        is_made = is_created(named_resource(parts))
        return found[0].names_after(workspace, is_created=is_made) if len(found) == 1 else None

    try:
        analysis = SqlChecker(None).analyse(view.query(workspace), lambda name: of_table((name,)), of_table)
    except LakewrightError:  # observing the view, or its table, reports it
        return None
    if not analysis.unknown:
        return None
    (name, hint), *others = analysis.unknown
    remedy = "Correct the query of the view, or declare the column in the relation of its table"
    return Fault(
        f"{phase} will fail: {view.label}: no table of its query has the column {name!r}"
        + (f", and {len(others)} more" if others else ""),
        remedy=f"{remedy}." if hint is None else f"{remedy}: {hint}",
        code=UNKNOWN_COLUMN,
    )


_CODES = (MAY_BE_ADDED, ROWS_ADDED_AGAIN)
"""Those that are known before the step runs; entities report theirs themselves."""


def with_warning(outcome: Outcome, step: Step) -> Outcome:
    """Return the outcome of a step with the warning of its plan; that of a failed one is left out.

    What was removed was asked for, and what was replaced may be built again after it: neither is an error.
    Nor are rows that are added once more by a target that is declared to be built always.
    """
    if outcome.status.is_failure:
        return outcome
    is_meant = step.added is not None and step.added.is_meant
    mild = (REMOVED_ROWS, *((ROWS_ADDED_AGAIN,) if is_meant else ()))
    warnings = (Phrase(f"{each.message}. ", each.remedy or "") for each in step.warnings if each.code in mild)
    outcome = replace(outcome, warnings=(*outcome.warnings, *warnings))
    errors = [each for each in step.warnings if each.code in _CODES and each.code not in mild]
    if not errors:
        return outcome
    error = reduce(Fault.and_also, errors if outcome.error is None else (outcome.error, *errors))
    return replace(outcome, status=Status.SUCCESS_WITH_ERRORS, error=error)
