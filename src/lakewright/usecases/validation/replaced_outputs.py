"""Validate that no target of a job replaces the rows that another target of the job has just built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError
from lakewright.plan.graph import build_graph
from lakewright.plan.phase import Phase
from lakewright.relations.relation import OutputMode
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.declared_nodes import declared_nodes, sample_workspace

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.graph import Node
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = ["replaced_output_faults"]


def replaced_output_faults(project: Project, lake: Lake) -> Iterator[Fault]:
    """Yield a warning for each two targets of a job of which the later one replaces what the other builds.

    Parameters without a default get a sample value of their type.
    """
    told: set[tuple[str, str]] = set()
    for job in project.jobs.values():
        for fault, pair in _of_job(project, job, lake):
            if pair not in told:
                told.add(pair)
                yield fault


def _of_job(project: Project, job: Job, lake: Lake) -> Iterator[tuple[Fault, tuple[str, str]]]:
    try:
        workspace = sample_workspace(project, job, lake)
        names = job.target_names(workspace.scope)
        nodes = {node.name: node for node in declared_nodes(workspace, names, Phase.BUILD)}
        order = build_graph(list(nodes.values()), Phase.BUILD).order
        defaults = TargetDefaults.of(project.config)
        replacing = [name for name in order if _overwrites(Target.named(workspace, name), defaults)]
    except LakewrightError:  # told elsewhere
        return
    for name in replacing:
        for earlier in order[: order.index(name)]:
            if _share(nodes, name, earlier) and not _are_apart(project, name, earlier):
                place = ", ".join(sorted({each.name for each in nodes[name].provides}))
                is_silver = project.targets[earlier].kind == "entity"
                later = f"have {earlier!r} run later, with `after: {name}`, and add rows, with `mode: APPEND`"
                yield (
                    Fault(
                        f"job {job.name!r}: target {name!r} is built after target {earlier!r}, and replaces "
                        f"what it has written to {place}",
                        project.targets[name].at(),
                        "Give it another place: this is the silver table of an entity."
                        if is_silver
                        else f"Give each of them a table or a partition of its own; or {later}.",
                    ),
                    (name, earlier),
                )


def _are_apart(project: Project, name: str, other: str) -> bool:
    """Return whether two targets declare other values for a partition column: samples may be the same."""
    partitions = [project.targets[each].raw.get("partition") for each in (name, other)]
    one, another = (
        {str(column).lower(): str(text) for column, text in each.items()} if isinstance(each, dict) else {}
        for each in partitions
    )
    return any(one[column] != another[column] for column in one.keys() & another.keys())


def _share(nodes: Mapping[str, Node], name: str, other: str) -> bool:
    return any(each.intersects(one) for each in nodes[name].provides for one in nodes[other].provides)


def _overwrites(target: Target, defaults: TargetDefaults) -> bool:
    """Return whether a build of a target replaces all rows that are where it writes."""
    return isinstance(target, WritingTarget) and target.mode_of(defaults) is OutputMode.OVERWRITE
