"""Which relations, mappings and entities each target reads, and which it writes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

from lakewright.documentation.document import Ref
from lakewright.errors import LakewrightError
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Named, Reference
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.workspace import Workspace

__all__ = ["DataFlow", "declared_flow"]

Flow: TypeAlias = tuple[tuple[Ref, ...], tuple[Ref, ...]]
"""The items that are read, and those that are written."""

_WRITING_PHASES = (Phase.CREATE, Phase.BUILD)


class DataFlow:
    """Compares what targets read and write with the resources of the project's relations."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def of(self, target: Target) -> Flow:
        """Return the items that a target reads, and those that it writes."""
        phases = [phase for phase in _WRITING_PHASES if phase in target.phases()]
        written = frozenset().union(*(target.provides(self._workspace, phase) for phase in phases))
        named = _items(target.references())
        writes = [ref for ref in named if ref.category == "entity" or self._overlaps(ref, written)]
        reads = [ref for ref in named if ref not in writes]
        if target.kind == "entity":
            needed = target.requires(self._workspace, Phase.BUILD)
            reads += [ref for ref in self._resources if self._overlaps(ref, needed)]
        return tuple(reads), tuple(writes)

    @cached_property
    def _resources(self) -> dict[Ref, frozenset[Resource]]:
        """The resources of each relation, except those that only read an entity."""
        found: dict[Ref, frozenset[Resource]] = {}
        for name in self._workspace.project.relations:
            try:
                relation = Relation.named(self._workspace, name)
                if relation.kind != "entity":
                    found[Ref("relation", name)] = relation.resources(self._workspace)
            except LakewrightError:
                continue  # the note of the relation's own item shows the error
        return found

    def _overlaps(self, ref: Ref, resources: frozenset[Resource]) -> bool:
        own = self._resources.get(ref, frozenset())
        return any(ours.intersects(theirs) for ours in own for theirs in resources)


def declared_flow(model: Named | None) -> Flow:
    """Return what a definition reads and writes, by its names alone, before expressions are evaluated."""
    if not isinstance(model, Target | MappingModel):
        return (), ()
    named = _items(model.references())
    output = getattr(model, "relation", None) if isinstance(model, WritingTarget) else None
    writes = [ref for ref in named if ref.category == "entity" or ref == Ref("relation", str(output))]
    return tuple(ref for ref in named if ref not in writes), tuple(writes)


def _items(references: Iterable[Reference]) -> list[Ref]:
    """Return the relations, mappings and entities among some references, each once."""
    categories = ("relation", "mapping", "entity")
    return list(
        dict.fromkeys(Ref(each.category, each.name) for each in references if each.category in categories)
    )
