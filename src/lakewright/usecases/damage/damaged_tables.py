"""Tables of this machine that can't be read.

Their Delta log is damaged or gone, data files are, or a file stands where their folder belongs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError, TargetError
from lakewright.errors.phrase import Command, ShellLine
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.observation import files_gone
from lakewright.lake.paths import local_path
from lakewright.lake.storage_errors import (
    DAMAGED,
    IN_PLACE,
    LACKS,
    known_remedy,
    lost_files_error,
    lost_log_error,
    moving_command,
)
from lakewright.plan.other_runs import OtherRun, commands_of
from lakewright.plan.phase import Phase
from lakewright.relations.delta import DeltaRelation
from lakewright.run.leftovers import is_built
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.strategies.outdated import rebuild_command
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.placed import placed_entities
from lakewright.usecases.staleness.declared_nodes import declared_nodes, offline_lake, sample_workspace
from lakewright.usecases.staleness.earlier_builds import RUNS

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.job import Job
    from lakewright.workspace.workspace import Workspace

__all__ = ["damaged_tables", "is_of_silver", "lost_beside", "writes_delta"]

_SILVER = "is_silver"

MOST_FILES = 10_000
"""Files of a table up to which each is looked for; 10,000 take about a tenth of a second."""


def damaged_tables(app: App) -> Iterator[Fault]:
    """Yield a fault for each damaged table of an entity or of a job's target, with what makes it again.

    Its details have the `subject`, which is the entity or target, and the `commands`, to be typed in order.

    Only tables in folders of this machine are looked at, and not those of files whose path holds a parameter.
    Data files are looked for up to `MOST_FILES` of a table.
    """
    seen: set[Path] = set()
    for entity, places in placed_entities(app):
        folder = None if places.silver.location is None else local_path(places.silver.location)
        if (found := _damage(folder, seen, is_delta=True, is_silver=True)) is not None:
            # A rebuild needs the log, but not the files.
            moves = () if LACKS in found.details else (moving_command(str(folder)),)
            fault = _fault(found, entity.called, (*moves, rebuild_command(entity).plus("--yes")))
            yield replace(fault, details={**fault.details, _SILVER: True})
    for job in (each for each in app.project.jobs.values() if each.targets):
        for target, folder, is_delta in _outputs(app, job):
            if (found := _damage(folder, seen, is_delta=is_delta)) is not None:
                yield _fault(found, target, (moving_command(str(folder)), *_builds(app, job, target)))


def is_of_silver(fault: Fault) -> bool:
    """Return whether a fault of a damaged table is one of an entity, from which targets are built."""
    return _SILVER in fault.details


def lost_beside(lost: Sequence[Fault], damaged: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return the faults of tables that are gone without those of targets whose tables can't be read."""
    told = {each.details["subject"] for each in damaged if IN_PLACE in each.details}
    return tuple(each for each in lost if each.details["subject"] not in told)


def _damage(
    folder: Path | None, seen: set[Path], *, is_delta: bool, is_silver: bool = False
) -> TargetError | None:
    is_table = folder is not None and (folder / "_delta_log").is_dir()
    if folder is None or folder in seen or not (is_delta or is_table):
        return None
    seen.add(folder)
    log = LocalLog(folder)
    if is_silver and not is_table and log.holds_rows():
        return lost_log_error(str(folder))
    try:
        table = read_log(log).table
    except TargetError as error:
        is_told = DAMAGED in error.details or IN_PLACE in error.details
        return error if is_told else None
    except LakewrightError:  # who looks at the table tells it
        return None
    is_looked_at = table is not None and table.get_add_actions().num_rows <= MOST_FILES
    gone = files_gone(folder, table) if table is not None and is_looked_at else []
    return lost_files_error(str(folder), gone) if gone else None


def _outputs(app: App, job: Job) -> Iterator[tuple[str, Path, bool]]:
    """Yield the targets of a job with the folders that they write in BUILD, and whether they are Delta's."""
    try:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        nodes = list(declared_nodes(workspace, job.target_names(workspace.scope), Phase.BUILD))
    except LakewrightError:
        return
    for node in nodes:
        for resource in node.provides:
            folder = local_path(resource.name) if resource.category == "file" else None
            if folder is not None:
                yield node.name, folder, writes_delta(workspace, node.name)


def writes_delta(workspace: Workspace, name: str) -> bool:
    """Return whether a target of a job writes a Delta table."""
    try:
        target = Target.named(workspace, name)
        return isinstance(target, WritingTarget) and isinstance(target.output(workspace), DeltaRelation)
    except LakewrightError:
        return False


def _builds(app: App, job: Job, target: str) -> tuple[Command, ...]:
    """Return the commands that build a target in each instance that was built."""
    found: dict[tuple[tuple[str, str], ...], None] = {}
    for run in islice(app.journal.runs(project=app.project.name, job=job.name), RUNS):
        for entry in app.journal.targets(run.run_id):
            if entry["name"] == target and is_built(entry):
                found.setdefault(tuple(sorted(entry.get("instance", {}).items())))
    runs = []
    for instance in sorted(found):
        known = tuple((name, text) for name, text in instance if HIDDEN not in text)
        runs.append(OtherRun("", job.name, known, tuple(name for name, text in instance if HIDDEN in text)))
    # Others of the job may add rows once more.
    every = [OtherRun("", job.name, (), tuple(each.name for each in job.parameters))]
    return commands_of(runs or every, options=("-t", target))


def _fault(error: TargetError, subject: str, commands: tuple[ShellLine, ...]) -> Fault:
    if IN_PLACE in error.details:
        return replace(error.as_fault(), details={**error.details, "subject": subject})
    details = {**error.details, "subject": subject, "commands": list(commands)}
    return Fault(error.message, code=error.code, remedy=known_remedy(commands), details=details)
