"""What instances of targets read and write, as they are declared and as the history records it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.partition import canonical_partition
from lakewright.lake.paths import local_path
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = [
    "APPEND",
    "WRITES",
    "are_near",
    "filled",
    "is_gone",
    "read_by",
    "recorded_places",
    "target_of",
    "written_by",
]

WRITES = "writes"
"""The entry of a target's result in the history that says what it has written."""

APPEND = "append"
"""The entry with the identity of the append that has added its rows, which the log of its table has, too."""


def recorded_places(places: Iterable[Resource]) -> list[str]:
    """Return what a target writes as the history records it."""
    return sorted(map(str, places))


def is_gone(places: Collection[Resource]) -> bool:
    """Return whether nothing is where a target writes: all of it are folders of this machine, and missing."""
    folders = [local_path(each.name) if each.category == "file" else None for each in places]
    return bool(folders) and all(folder is not None and not folder.exists() for folder in folders)


def are_near(places: Collection[Resource]) -> bool:
    """Return whether places are folders of this machine, at which a look takes no time."""
    return all(each.category == "file" and local_path(each.name) is not None for each in places)


def filled(target: Target, workspace: Workspace) -> Answer:
    """Return whether what a target writes, or its partition, holds rows, as far as that can be told."""
    if not isinstance(target, WritingTarget):
        return Answer.UNKNOWN
    try:
        relation = target.stored(workspace)
        partition = canonical_partition(relation.partitions, target.partition)
        return relation.observe(workspace, partition).filled
    except LakewrightError:
        return Answer.UNKNOWN


def written_by(
    project: Project,
    lake: Lake,
    job: Job,
    name: str,
    parameters: Mapping[str, str],
    *,
    phase: Phase = Phase.BUILD,
) -> frozenset[Resource]:
    """Return what an instance of a target writes, or empties, in a phase; nothing if that is not known."""
    made = target_of(project, lake, job, name, parameters)
    try:
        return frozenset() if made is None else made[0].provides(made[1], phase)
    except LakewrightError:
        return frozenset()


def read_by(
    project: Project, lake: Lake, job: Job, name: str, parameters: Mapping[str, str]
) -> frozenset[Resource]:
    """Return what an instance of a target reads when it is built; nothing if that is not known."""
    made = target_of(project, lake, job, name, parameters)
    try:
        return frozenset() if made is None else made[0].requires(made[1], Phase.BUILD)
    except LakewrightError:
        return frozenset()


def target_of(
    project: Project, lake: Lake, job: Job, name: str, parameters: Mapping[str, str]
) -> tuple[Target, Workspace] | None:
    """Return a target and the workspace of its instance.

    None if a secret value was not recorded, or parameters or definitions have changed.
    """
    try:
        values = {each.name: each.parse(parameters[each.name]) for each in job.parameters}
        scope = project.job_scope(job, values)
        workspace = Workspace(project.within(scope), scope, lake)
        return Target.named(workspace, name), workspace
    except (LakewrightError, KeyError, ValueError):
        return None
