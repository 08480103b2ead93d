"""The flow of data between the items of a project: what each target and mapping reads and writes.

It follows from the declarations alone; expressions get stand-ins for a job's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakewright.app import App
from lakewright.documentation.document import Ref
from lakewright.documentation.gathering.gather import DataFlow, declared_flow
from lakewright.errors import LakewrightError
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sample_workspace
from lakewright.workspace.workspace import Workspace

__all__ = ["Flows", "declared_workspace", "read_flows"]

MOST_NODES = 300
"""With more items than this, mappings are left out, and those that read them read what they read."""


@dataclass(frozen=True, slots=True)
class Flows:
    """What flows where.

    Attributes:
        nodes: All entities, relations and targets, and the mappings unless there are too many.
        edges: From an item to one that reads it, or that it writes.
        writers: For each entity that is written by one target alone, this target, which is no node itself.
    """

    nodes: tuple[Ref, ...]
    edges: tuple[tuple[Ref, Ref], ...]
    writers: dict[str, str]

    def around(self, focus: Ref) -> Flows:
        """Return the part from which an item is made, and that is made from it."""
        kept = {focus} | self._reached(focus, 0) | self._reached(focus, 1)
        return Flows(
            tuple(node for node in self.nodes if node in kept),
            tuple(edge for edge in self.edges if edge[0] in kept and edge[1] in kept),
            self.writers,
        )

    def _reached(self, focus: Ref, end: int) -> set[Ref]:
        found: set[Ref] = set()
        border = {focus}
        while border:
            border = {edge[end] for edge in self.edges if edge[1 - end] in border} - found - {focus}
            found |= border
        return found


def read_flows(app: App) -> Flows:
    """Return the flow of data in a project."""
    project = app.project
    workspace = declared_workspace(app)
    edges: dict[tuple[Ref, Ref], None] = {}
    writers: dict[str, str] = {}
    for target, reads, writes in _targets(workspace):
        is_alone = len(writes) == 1 and writes[0].category == "entity"
        via = writes[0] if is_alone else Ref("target", target)
        if is_alone:
            writers[writes[0].name] = target
        edges.update(dict.fromkeys((ref, via) for ref in reads if ref != via))
        edges.update(dict.fromkeys((via, ref) for ref in writes if ref != via))
    for name, definition in project.relations.items():
        if definition.kind == "entity":
            edges[Ref("entity", str(definition.raw.get("entity"))), Ref("relation", name)] = None
    for name, definition in project.mappings.items():
        reads, _ = declared_flow(definition.check()[0])
        edges.update(dict.fromkeys((ref, Ref("mapping", name)) for ref in reads))
    nodes = [
        *(Ref("relation", name) for name in project.relations),
        *(Ref("mapping", name) for name in project.mappings),
        *(Ref("entity", name) for name in project.entities),
        *(Ref("target", name) for name in project.targets if name not in writers.values()),
    ]
    known = set(nodes)
    flows = Flows(tuple(nodes), tuple(e for e in edges if e[0] in known and e[1] in known), writers)
    return flows if len(nodes) <= MOST_NODES else _without_mappings(flows)


def declared_workspace(app: App) -> Workspace:
    """Return the workspace of a job with stand-ins for its parameters, in which nothing starts Spark."""
    lake = offline_lake(app)
    for job in app.project.jobs.values():
        try:
            return sample_workspace(app.project, job, lake)
        except LakewrightError:
            continue
    return Workspace(app.project, app.project.scope, lake)


def _targets(workspace: Workspace) -> Iterator[tuple[str, tuple[Ref, ...], tuple[Ref, ...]]]:
    flow = DataFlow(workspace)
    for name, definition in workspace.project.targets.items():
        try:
            reads, writes = flow.of(Target.named(workspace, name))
        except Exception:  # an expression without its value, or what only Spark knows
            reads, writes = declared_flow(definition.check()[0])
        yield name, reads, writes


def _without_mappings(flows: Flows) -> Flows:
    """Return the flow in which those that read a mapping read what it reads."""
    edges = list(flows.edges)
    for mapping in (node for node in flows.nodes if node.category == "mapping"):
        sources = [a for a, b in edges if b == mapping]
        readers = [b for a, b in edges if a == mapping]
        edges = [edge for edge in edges if mapping not in edge]
        edges += [(a, b) for a in sources for b in readers if a != b]
    kept = tuple(node for node in flows.nodes if node.category != "mapping")
    return Flows(kept, tuple(dict.fromkeys(edges)), flows.writers)
