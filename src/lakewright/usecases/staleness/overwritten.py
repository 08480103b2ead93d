"""Which instances of a target overwrite the same output as a whole, so that only the last one shows.

A table that is computed anew in each run of a monthly job is one output of all its instances: if it is out of
date, one build makes it right, of whatever month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.plan.phase import Phase
from lakewright.run.lost_rows import overwrites
from lakewright.run.outputs import target_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.usecases.staleness.declared_nodes import offline_lake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakewright.app import App
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job

__all__ = ["newest_writers", "overwritten_output"]


def overwritten_output(
    app: App, job: Job, target: str, parameters: Mapping[str, str]
) -> frozenset[Resource] | None:
    """Return what an instance of a target overwrites; None if it adds to it, or if that is not known."""
    made = target_of(app.project, offline_lake(app), job, target, parameters) if parameters else None
    if made is None:
        return None
    found, workspace = made
    if not overwrites(found, TargetDefaults.of(app.project.config)):
        return None
    try:
        return found.provides(workspace, Phase.BUILD)
    except LakewrightError:  # its definition is wrong for these parameters
        return None


def newest_writers(
    app: App, job: Job, built: Iterable[tuple[str, Mapping[str, str]]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the instances of targets whose output no later instance has overwritten.

    Args:
        app: The project.
        job: The job that built them.
        built: Names of targets with the parameters of an instance, the last one that was built first.
    """
    seen: set[tuple[str, frozenset[Resource]]] = set()
    known: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for name, parameters in built:
        key = name, tuple(sorted(parameters.items()))
        if key in known:
            continue
        known.add(key)
        output = overwritten_output(app, job, name, parameters)
        if output is not None and (name, output) in seen:
            continue
        if output is not None:
            seen.add((name, output))
        yield name, parameters
