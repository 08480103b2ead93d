"""Check the columns that `documentation` blocks name, and outputs of which one target replaces another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.documentation.checks.primary_key import PrimaryKeyCheck
from lakewright.errors import Fault, LakewrightError, NotInstalled
from lakewright.mappings.mapping import Mapping as MappingKind
from lakewright.mappings.values import ValuesMapping
from lakewright.plan.graph import build_graph
from lakewright.plan.phase import Phase
from lakewright.plan.resource_index import ResourceIndex
from lakewright.relations.relation import OutputMode, Relation
from lakewright.relations.values import ValuesRelation
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.records import record_faults
from lakewright.spec.suggestions import suggestion
from lakewright.targets.datasets.values import ValuesDataset
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.declared_nodes import declared_nodes, sample_workspace
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.named_columns import DATASETS
from lakewright.usecases.validation.sql import MappingColumns
from lakewright.workspace.sql_check import SqlChecker

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = ["PastFaults", "documented_column_faults", "past_faults", "replaced_output_faults", "value_faults"]


def documented_column_faults(evaluation: Evaluation, checker: SqlChecker) -> tuple[Fault, ...]:
    """Return the documented columns that a relation, mapping or target lacks as it is declared, each once."""
    found = (
        fault
        for each in evaluation.evaluated
        if isinstance(each.model, Relation | MappingKind | Target) and each.model.documentation is not None
        for fault in _faults(each, _known(each, checker))
    )
    return tuple(dict.fromkeys(found))


def _known(each: Evaluated, checker: SqlChecker) -> Sequence[str] | None:
    """Return the columns that are declared; None if they are not known."""
    model = each.model
    if isinstance(model, MappingKind):
        return MappingColumns(each.workspace, checker).of(each.definition.name)
    try:
        source = model.output(each.workspace) if isinstance(model, WritingTarget) else model
        declare = getattr(source, "declared", None)
        fields = None if declare is None else declare(each.workspace)
        partitions = source.partitions if isinstance(source, Relation) else ()
        return None if fields is None else [field.name for field in (*fields, *partitions)]
    except LakewrightError:
        return None  # it has a fault of its own, or only its data tells its columns


def _faults(each: Evaluated, known: Sequence[str] | None) -> Iterator[Fault]:
    if known is None:
        return
    there = {name.lower() for name in known}
    for name, path in _named(each):
        # A name may be the path of a field.
        if name.lower() not in there and name.lower().partition(".")[0] not in there:
            message = f"{each.definition.subject}: its documentation names a column {name!r}, which it lacks"
            yield Fault(message, each.definition.at("documentation", *path), suggestion(name, known))


def _named(each: Evaluated) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    documentation = getattr(each.model, "documentation", None) or Documentation()
    for index, column in enumerate(documentation.columns):
        yield column.name, ("columns", index)
    for index, check in enumerate(documentation.checks):
        if isinstance(check, PrimaryKeyCheck):
            yield from ((name, ("checks", index)) for name in check.columns)


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
        replacing = {name for name in order if _overwrites(Target.named(workspace, name), defaults)}
    except LakewrightError:  # told elsewhere
        return
    makers = ResourceIndex[str]()
    for name in order:
        places = nodes[name].provides
        looked_at = places if name in replacing else ()
        found = {each for place in looked_at for each in makers.touching(place)}
        for place in places:
            makers.add(place, name)
        for earlier in sorted(found, key=order.index):
            if not _are_apart(project, name, earlier):
                named = ", ".join(sorted({each.name for each in places}))
                is_silver = project.targets[earlier].kind == "entity"
                later = f"have {earlier!r} run later, with `after: {name}`, and add rows, with `mode: APPEND`"
                yield (
                    Fault(
                        f"job {job.name!r}: target {name!r} is built after target {earlier!r}, and replaces "
                        f"what it has written to {named}",
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


def _overwrites(target: Target, defaults: TargetDefaults) -> bool:
    """Return whether a build of a target replaces all rows that are where it writes."""
    return isinstance(target, WritingTarget) and target.mode_of(defaults) is OutputMode.OVERWRITE


def value_faults(evaluation: Evaluation) -> Iterator[Fault]:
    """Yield the faults of the records of `values` mappings and relations, with the place of each value.

    Records with expressions are left out: a job may give them other values.
    """
    for each in evaluation.evaluated:
        for found, where in _literals(each):
            try:
                declare = found.fields if isinstance(found, ValuesMapping) else found.declared
                fields = declare(each.workspace)
            except LakewrightError:
                continue  # its schema has a fault of its own
            for path, fault in record_faults(fields, found.records) if fields else ():
                if "$" not in str(_written(each, where, path[0])):
                    place = each.definition.at(*where, "records", *path)
                    yield replace(
                        fault, message=f"{each.definition.subject}: {fault.message}", location=place
                    )


def _literals(each: Evaluated) -> Iterator[tuple[ValuesMapping | ValuesRelation, tuple[str, ...]]]:
    """Yield what declares records, with the keys of the definition below which it does."""
    if isinstance(each.model, ValuesMapping | ValuesRelation):
        yield each.model, ()
    for key in DATASETS:
        dataset = getattr(each.model, key, None)
        if isinstance(dataset, ValuesDataset):
            yield dataset.source(each.workspace), (key,)


def _written(each: Evaluated, where: tuple[str, ...], index: str | int) -> Any:
    """Return a record as it is written; everything that is, where a template makes it."""
    owner: Any = each.definition.raw
    for key in where:
        owner = owner.get(key) if isinstance(owner, Mapping) else None
    records = owner.get("records") if isinstance(owner, Mapping) else None
    return records[index] if isinstance(records, list) and isinstance(index, int) else each.definition.raw


@dataclass(frozen=True, slots=True)
class PastFaults:
    """What is wrong with the pasts of a project's entities.

    Attributes:
        errors: Columns that are missing.
        warnings: Places that can't be read here; a run may be able to, or need them no longer.
    """

    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def past_faults(evaluation: Evaluation, lake: Lake) -> PastFaults:
    """Return what is wrong with `history_from` of entities, as far as it is known without Spark."""
    faults = PastFaults()
    seen = set()
    for each in evaluation.evaluated:
        entity = each.model
        if not isinstance(entity, Entity) or entity.settings.history_from is None:
            continue
        mark = (each.definition.name, entity.settings.history_from.text)
        if mark in seen:
            continue
        seen.add(mark)
        from lakewright.slices.past import check_past  # only few projects need it

        try:
            check_past(lake, entity)
        except NotInstalled:
            continue  # only Spark can read the place
        except LakewrightError as error:
            fault = Fault(
                f"{each.definition.subject}: {error.message}",
                each.definition.at("settings", "history_from"),
                error.remedy,
            )
            (faults.errors if "lacks" in error.details else faults.warnings).append(fault)
    return faults
