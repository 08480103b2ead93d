"""Gathering the documentation's content from the definitions, the lake, the manifest and the run history.

An error while one item is gathered becomes a note of that item; the others are gathered all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

from lakewright.documentation.document import (
    Column,
    Document,
    Ending,
    Item,
    LastRun,
    Ref,
    Source,
    origins_of,
    walk,
)
from lakewright.documentation.gathering.items import entity_item, mapping_item, relation_item, target_item
from lakewright.errors import LakewrightError
from lakewright.lake.spark_errors import message_of
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.record import format_instant
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.job import Job
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.manifest.store import Store


log = logging.getLogger(__name__)


_COLLECTORS = {"relation": "relations", "mapping": "mappings", "target": "targets", "entity": "entities"}
"""Name of the collector of each category."""


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """The options of gathering.

    Attributes:
        collected: Names of the collectors to run.
        job: The job whose names expressions are evaluated with.
        parameters: The values of its parameters.
        last_run: The run that the endings of targets are taken from.
    """

    collected: frozenset[str]
    job: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    last_run: Run | None = None


def gather_document(context: Context, request: DocumentRequest) -> Document:
    """Return the content of the documentation, without secrets; checks run if they are collected."""
    project = context.workspace.project
    run = request.last_run
    return Document(
        project=project.name,
        made=format_instant(context.clock()),
        tool=f"Lakewright {version('lakewright')}",
        version=project.version,
        description=project.description,
        job=request.job,
        parameters=request.parameters,
        jobs=tuple(map(_job, project.jobs.values())),
        items=tuple(_connect_items(list(_Gatherer(context, request).items()))),
        last_run=None if run is None else _last_run_of(run),
    ).redacted(context.redact)


def _job(job: Job) -> tuple[str, str | None, tuple[str, ...], tuple[str, ...]]:
    return job.name, job.description, tuple(each.name for each in job.parameters), job.targets


class _Gatherer:
    """Gathers the items of each category that is collected."""

    def __init__(self, context: Context, request: DocumentRequest) -> None:
        self.context = context
        self.workspace = context.workspace
        self.request = request
        self.is_checked = "checks" in request.collected
        self.flow = DataFlow(self.workspace)

    @cached_property
    def endings(self) -> Mapping[str, tuple[Ending, ...]]:
        """How targets ended in the last run."""
        run, store = self.request.last_run, self.context.ledger.store
        return {} if run is None else _endings_of(run, store, self.request.parameters)

    def items(self) -> Iterator[Item]:
        """Yield the items of all categories that are collected."""
        project = self.workspace.project
        relation = partial(relation_item, self.workspace, is_checked=self.is_checked)
        is_traced, outline = "lineage" in self.request.collected, self.workspace.outline()
        mapping = partial(
            mapping_item, self.workspace, outline, is_checked=self.is_checked, is_traced=is_traced
        )
        yield from self._items("relation", project.relations, relation)
        yield from self._items("mapping", project.mappings, mapping)
        yield from self._items("target", project.targets, self._target)
        yield from self._items("entity", project.entities, partial(entity_item, self.context))

    def _items(self, category: str, names: Iterable[str], gather: Callable[[str], Item]) -> Iterator[Item]:
        if _COLLECTORS[category] in self.request.collected:
            for name in names:
                item = self._item_or_note(category, name, gather)
                yield replace(item, endings=self.endings.get(name, ())) if category == "target" else item

    def _target(self, name: str) -> Item:
        target = Target.named(self.workspace, name)
        item = target_item(self.workspace, target, is_checked=self.is_checked)
        reads, writes = self.flow.of(target)
        return replace(item, reads=reads, read_by=writes)

    def _item_or_note(self, category: str, name: str, gather: Callable[[str], Item]) -> Item:
        """Return the item, or its declared parts and a note with the error if gathering fails."""
        try:
            return gather(name)
        except Exception as error:  # Spark raises errors of many types
            log.debug("%s %s could not be documented", category, name, exc_info=True)
            return self._declared_item(category, name, message_of(error, "while it was documented"))

    def _declared_item(self, category: str, name: str, note: str) -> Item:
        project = self.workspace.project
        definitions = project.entity_definitions if category == "entity" else project.definitions(category)
        definition = definitions[name]
        description = definition.raw.get("description")
        reads, writes = declared_flow(definition.check()[0])
        return Item(
            Ref(category, name),
            definition.kind or category,
            description=description if isinstance(description, str) else None,
            note=note,
            reads=reads,
            read_by=writes,
        )


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


def _last_run_of(run: Run) -> LastRun:
    """Return a run as the documentation shows it."""
    return LastRun(
        run_id=run.run_id,
        job=run.job,
        phase=run.phase,
        status=run.status,
        started=format_instant(run.started),
        finished=format_instant(run.finished) if run.finished else None,
        parameters={name: str(value) for name, value in run.parameters.items()},
    )


def _endings_of(run: Run, store: Store, parameters: Mapping[str, str]) -> dict[str, tuple[Ending, ...]]:
    """Return how each target ended in each phase of a run, by the target's name.

    Args:
        run: The run.
        store: The store that holds its history.
        parameters: Of a run with several instances, the one to prefer; otherwise the last one counts.
    """
    found: dict[str, dict[str, Ending]] = {}
    for entry in Journal(store).targets(run.run_id):
        is_other = bool(parameters) and dict(entry["instance"]) != dict(parameters)
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
    return {name: tuple(phases.values()) for name, phases in found.items()}


Columns: TypeAlias = Mapping[Source, Column]


def _connect_items(items: Sequence[Item]) -> list[Item]:
    """Return the items with all their neighbours, and their columns with sources, origins and descriptions.

    A gathered target lists the items that it writes in `read_by`.
    """
    items = _with_neighbours(items)
    by_ref = {item.ref: item for item in items}
    items = _with_columns(items, lambda item, column: _with_sources(item, column, by_ref))
    known = {_key(item.ref, column.name): column for item in items for column in item.columns}

    def onwards(source: Source) -> tuple[Source, ...]:
        column = known.get(_key(*source))
        return () if column is None else column.sources

    def traced(item: Item, column: Column) -> Column:
        origins = origins_of(Source(item.ref, column.name), onwards)
        return replace(column, origins=origins, description=column.description or _inherited(column, known))

    return _with_columns(items, traced)


def _with_columns(items: Iterable[Item], change: Callable[[Item, Column], Column]) -> list[Item]:
    """Return the items with each of their columns changed."""
    return [replace(item, columns=tuple(change(item, each) for each in item.columns)) for item in items]


def _with_neighbours(items: Sequence[Item]) -> list[Item]:
    """Return the items with `reads` and `read_by` completed, so that each edge is in both of its items."""
    reads = {item.ref: dict.fromkeys(item.reads) for item in items}
    for item in items:
        for written in item.read_by:
            if written in reads:
                reads[written][item.ref] = None
    read_by: dict[Ref, dict[Ref, None]] = {item.ref: dict.fromkeys(item.read_by) for item in items}
    for ref, others in reads.items():
        for other in others:
            read_by.setdefault(other, {})[ref] = None
    return [
        replace(item, reads=tuple(reads[item.ref]), read_by=tuple(r for r in read_by[item.ref] if r in reads))
        for item in items
    ]


def _with_sources(item: Item, column: Column, by_ref: Mapping[Ref, Item]) -> Column:
    """Return a column of a relation or entity, which targets write, with its sources; others as they are."""
    if column.sources or column.made or item.ref.category not in ("relation", "entity"):
        return column
    return replace(column, sources=tuple(_sources(item, column, by_ref)))


def _sources(item: Item, column: Column, by_ref: Mapping[Ref, Item]) -> Iterator[Source]:
    """Yield the column of the same name, in any case, of each item that the column's rows come from."""
    for ref in item.reads:
        is_target = ref.category == "target" and ref in by_ref
        for origin in by_ref[ref].reads if is_target else (ref,):
            name = column.source if origin.category == "relation" else None
            found = _column_named(by_ref.get(origin), name or column.name)
            if found is not None:
                yield Source(origin, found.name)


def _column_named(item: Item | None, name: str) -> Column | None:
    columns = item.columns if item is not None else ()
    return next((each for each in columns if each.name.lower() == name.lower()), None)


def _key(ref: Ref, column: str) -> Source:
    return Source(ref, column.lower())


def _inherited(column: Column, known: Columns) -> str | None:
    """Return the description of the nearest source, as long as each column has one source of its name."""

    def onwards(of: Column | None) -> tuple[Source, ...]:
        return of.sources if of is not None and len(of.sources) == 1 else ()

    for source in walk(onwards(column), lambda each: onwards(known.get(_key(*each)))):
        found = known.get(_key(*source))
        if found is None or found.name.lower() != column.name.lower():
            return None
        if found.description:
            return found.description
    return None
