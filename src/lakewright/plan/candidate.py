"""The targets of one instance of a job, as the planner sees them.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.graph import Node, build_graph
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.selectors import Selectable

__all__ = ["Candidate", "Instance", "selectables"]

_BUILDING = (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)


@dataclass(frozen=True)
class Candidate:
    """One target of one instance.

    Attributes:
        name: Name of the target.
        kind: Its kind.
        nodes: Its dependencies in each phase that it takes part in.
        observe: Returns its observation. Called at most once, and only for selected targets.
        dirtiness: Returns whether it must run in a phase, given an observation. Pure.
        unfinished: Phases that an earlier run did not finish, each with the reason.
        labels: `key` and `key=value` of each of its labels.
    """

    name: str
    kind: str
    nodes: Mapping[Phase, Node]
    observe: Callable[[], Observation]
    dirtiness: Callable[[Phase, Observation], Dirtiness]
    unfinished: Mapping[Phase, str] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()

    @cached_property
    def observation(self) -> Observation:
        """The state of the target before any step runs."""
        return self.observe()


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a job: its parameters as text, and its targets in declared order."""

    parameters: Mapping[str, str]
    candidates: tuple[Candidate, ...]


def selectables(instance: Instance) -> tuple[Selectable, ...]:
    """Return an instance's targets for `select`, with their dependencies in all phases of the build."""
    sources: dict[str, frozenset[str]] = {}
    for phase in _BUILDING:
        nodes = [each.nodes[phase] for each in instance.candidates if phase in each.nodes]
        for name, found in build_graph(nodes, phase).sources.items():
            sources[name] = sources.get(name, frozenset()) | found
    return tuple(
        Selectable(each.name, each.kind, each.labels, sources.get(each.name, frozenset()))
        for each in instance.candidates
    )
