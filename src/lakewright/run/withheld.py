"""Targets of a job that wait for a fault in the project's files, while the others go on.

Source: the rules of the server, "Triggers" (failures wait for the operator, the others go on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, SpecError
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Candidate
from lakewright.plan.resource import Resource
from lakewright.run.kinds import registry
from lakewright.targets.lease import table_resource
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["withheld_candidate"]


def withheld_candidate(workspace: Workspace, name: str, fault: Fault) -> Candidate | None:
    """Return the candidate of a faulty target, which a plan blocks with everything that depends on it.

    What it writes is found in its declaration, as far as that can be read. None if it is disabled.
    """
    declared = workspace.project.faulty_targets.get(name)
    raw = {} if declared is None else declared.raw
    if raw.get("enabled") is False:
        return None
    kind = str(raw.get("kind", "target"))
    written = _written(workspace, raw) if _feeds_others(kind) else frozenset[Resource]()
    node = Node(
        name,
        before=_names(raw.get("before")),
        after=_names(raw.get("after")),
        provides=written or frozenset(),
    )
    return Candidate(
        name=name,
        kind=kind,
        nodes=dict.fromkeys(Phase, node),
        observe=lambda: Observation(f"target:{name}"),
        dirtiness=lambda *_: Dirtiness.no(fault.message),
        fault=fault,
        may_write_all=written is None,
    )


def _feeds_others(kind: str) -> bool:
    """Return whether others may read what targets of a kind write; they may if the kind is unknown."""
    found = registry().find_or_none("target", kind)
    return found is None or not issubclass(found, Target) or found.feeds_others


def _written(workspace: Workspace, raw: Any) -> frozenset[Resource] | None:
    """Return what a target writes by its declaration; None if that is not known."""
    relation, entity = raw.get("relation"), raw.get("entity")
    try:
        if isinstance(entity, str | int):
            silver = workspace.project.entity(entity).places(workspace.lake.settings).silver
            return frozenset({table_resource(silver)})
        if isinstance(relation, str):
            return workspace.relation(workspace.scope.render(relation)).resources(workspace)
    except SpecError:
        pass
    return None


def _names(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))
