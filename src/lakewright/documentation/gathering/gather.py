"""Gathering what the documentation tells: from definitions, the lake, the manifest and the history.

What can't be found out for one item is noted there; the others are told all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

from lakewright.documentation.document import Document, Ending, Item, LastRun, Ref
from lakewright.documentation.gathering.entities import entity_item
from lakewright.documentation.gathering.items import mapping_item, relation_item, target_item
from lakewright.documentation.lineage.connect import connect_items
from lakewright.errors import LakewrightError, SpecError
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.record import format_instant
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Named
from lakewright.spec.models.job import Job
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.workspace import Workspace

__all__ = ["DocumentRequest", "gather_document"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_WRITING = (Phase.CREATE, Phase.BUILD)


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """What is to be told.

    Attributes:
        collected: Names of collectors.
        tool: Name and version of this tool.
        job: For which the definitions were resolved.
        parameters: Its parameters.
        last_run: The run of which is told how targets ended.
    """

    collected: frozenset[str]
    tool: str
    job: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    last_run: Run | None = None


def gather_document(context: Context, asked: DocumentRequest) -> Document:
    """Return everything that is to be told; checks are tried, where they are asked for."""
    return _Gathering(context, asked).document()


class _Gathering:
    def __init__(self, context: Context, asked: DocumentRequest) -> None:
        self.context = context
        self.workspace = context.workspace
        self.asked = asked

    @cached_property
    def outline(self) -> Workspace:
        """Frames of the mappings, without rows."""
        return self.workspace.outline()

    def document(self) -> Document:
        project = self.workspace.project
        items = connect_items([*self._relations(), *self._mappings(), *self._targets(), *self._entities()])
        return Document(
            project=project.name,
            made=format_instant(self.context.clock()),
            tool=self.asked.tool,
            version=project.version,
            description=project.description,
            job=self.asked.job,
            parameters=self.asked.parameters,
            jobs=tuple(map(_job, project.jobs.values())),
            items=tuple(items),
            last_run=None if self.asked.last_run is None else _last_run(self.asked.last_run),
        ).redacted(self.context.redact)

    def _relations(self) -> Iterable[Item]:
        if "relations" not in self.asked.collected:
            return
        for name in self.workspace.project.relations:
            yield self._item("relation", name, partial(self._relation, name))

    def _relation(self, name: str) -> Item:
        relation = Relation.named(self.workspace, name)
        return relation_item(self.workspace, relation, is_checked=self._is_checked)

    def _mappings(self) -> Iterable[Item]:
        if "mappings" not in self.asked.collected:
            return
        for name in self.workspace.project.mappings:
            yield self._item("mapping", name, partial(self._mapping, name))

    def _mapping(self, name: str) -> Item:
        return mapping_item(
            self.workspace,
            self.outline,
            name,
            is_checked=self._is_checked,
            is_traced="lineage" in self.asked.collected,
        )

    def _targets(self) -> Iterable[Item]:
        if "targets" not in self.asked.collected:
            return
        endings = self._endings()
        for name in self.workspace.project.targets:
            item = self._item("target", name, partial(self._target, name))
            yield replace(item, endings=tuple(endings.get(name, ())))

    def _target(self, name: str) -> Item:
        target = Target.named(self.workspace, name)
        item = target_item(self.workspace, target, is_checked=self._is_checked)
        reads, writes = self._touched(target)
        return replace(item, reads=tuple(reads), read_by=tuple(writes))

    def _touched(self, target: Target) -> tuple[list[Ref], list[Ref]]:
        """Return what a target is made of, and what it fills."""
        phases = target.phases()
        filled = _resources(target.provides(self.workspace, phase) for phase in _WRITING if phase in phases)
        named = dict.fromkeys(
            Ref(each.category, each.name)
            for each in target.references()
            if each.category in ("relation", "mapping", "entity")
        )
        writes = [ref for ref in named if ref.category == "entity" or self._meets(ref, filled)]
        reads = [ref for ref in named if ref not in writes]
        if target.kind == "entity":
            needed = target.requires(self.workspace, Phase.BUILD)
            reads += [ref for ref in self._places if self._meets(ref, needed)]
        return reads, writes

    @cached_property
    def _places(self) -> dict[Ref, frozenset[Resource]]:
        """What each relation is stored in."""
        found: dict[Ref, frozenset[Resource]] = {}
        for name in self.workspace.project.relations:
            try:
                relation = Relation.named(self.workspace, name)
                if relation.kind != "entity":
                    found[Ref("relation", name)] = relation.resources(self.workspace)
            except LakewrightError:
                continue  # its own item tells why
        return found

    def _meets(self, ref: Ref, resources: frozenset[Resource]) -> bool:
        places = self._places.get(ref, frozenset())
        return any(ours.intersects(theirs) for ours in places for theirs in resources)

    def _entities(self) -> Iterable[Item]:
        if "entities" not in self.asked.collected:
            return
        for name in self.workspace.project.entities:
            yield self._item("entity", name, partial(entity_item, self.context, name))

    @property
    def _is_checked(self) -> bool:
        return "checks" in self.asked.collected

    def _item(self, category: str, name: str, make: Callable[[], Item]) -> Item:
        """Return an item; where it can't be made, one that tells why."""
        try:
            return make()
        except SpecError as error:
            return self._bare(category, name, error.faults[0].message)
        except LakewrightError as error:
            return self._bare(category, name, error.message)
        except Exception as error:  # whatever the engine says, the other items are told
            log.debug("%s %s could not be documented", category, name, exc_info=True)
            return self._bare(
                category, name, f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
            )

    def _bare(self, category: str, name: str, note: str) -> Item:
        project = self.workspace.project
        definitions = project.entity_definitions if category == "entity" else project.definitions(category)
        definition = definitions[name]
        description = definition.raw.get("description")
        told = description if isinstance(description, str) else None
        reads, writes = _as_written(definition.check()[0])
        return Item(
            Ref(category, name),
            definition.kind or category,
            description=told,
            note=note,
            reads=reads,
            read_by=writes,
        )

    def _endings(self) -> dict[str, list[Ending]]:
        found: dict[str, dict[str, Ending]] = {}
        run = self.asked.last_run
        if run is None:
            return {}
        for entry in Journal(self.context.ledger.store).targets(run.run_id):
            is_other = bool(self.asked.parameters) and dict(entry["instance"]) != dict(self.asked.parameters)
            phases = found.setdefault(entry["name"], {})
            if is_other and entry["phase"] in phases:
                continue
            error = entry.get("error") or {}
            phases[entry["phase"]] = Ending(
                phase=entry["phase"],
                status=entry["status"],
                reasons=tuple(entry["reasons"]),
                seconds=float(entry["seconds"]),
                error=error.get("message"),
            )
        return {name: list(phases.values()) for name, phases in found.items()}


def _as_written(model: Named | None) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
    """Return what a definition reads and fills, by its names alone, before expressions are evaluated."""
    if model is None or not isinstance(model, Target | MappingModel):
        return (), ()
    named = [
        Ref(each.category, each.name)
        for each in model.references()
        if each.category in ("relation", "mapping", "entity")
    ]
    own = getattr(model, "relation", None) if isinstance(model, WritingTarget) else None
    writes = [ref for ref in named if ref.category == "entity" or ref == Ref("relation", str(own))]
    return tuple(ref for ref in named if ref not in writes), tuple(writes)


def _resources(found: Iterable[frozenset[Resource]]) -> frozenset[Resource]:
    return frozenset().union(*found)


def _job(job: Job) -> tuple[str, str | None, tuple[str, ...], tuple[str, ...]]:
    return job.name, job.description, tuple(each.name for each in job.parameters), job.targets


def _last_run(run: Run) -> LastRun:
    return LastRun(
        run_id=run.run_id,
        job=run.job,
        phase=run.phase,
        status=run.status,
        started=format_instant(run.started),
        finished=format_instant(run.finished) if run.finished else None,
        parameters={name: str(value) for name, value in run.parameters.items()},
    )
