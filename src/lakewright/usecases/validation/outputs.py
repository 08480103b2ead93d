"""Check records, pasts of entities, outputs of targets and mappings, and what Spark says of mappings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Models
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import ColumnMismatch, Fault, LakewrightError, NotInstalled, SpecError, TargetError
from lakewright.lake.lake import Lake
from lakewright.lake.spark_errors import reason_with_position
from lakewright.mappings.mapping import MAIN, Mapping
from lakewright.mappings.sources import ValuesMapping
from lakewright.plan.graph import build_graph
from lakewright.plan.phase import Phase
from lakewright.plan.resource_index import ResourceIndex
from lakewright.relations.relation import OutputMode
from lakewright.relations.values import ValuesRelation
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.records import record_faults
from lakewright.spec.project import Project
from lakewright.spec.words import first_of
from lakewright.targets.context import TargetDefaults
from lakewright.targets.datasets import ValuesDataset
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.declared_nodes import declared_nodes, sampled_jobs
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.named_columns import DATASETS
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.spec.models.job import Job


def replaced_output_faults(project: Project, lake: Lake) -> Iterator[Fault]:
    """Yield a warning for each two targets of a job of which the later one replaces what the other builds.

    Parameters without a default get a sample value of their type.
    """
    seen: set[tuple[str, str]] = set()
    for job, workspace, names in sampled_jobs(project, lake):
        for fault, pair in _of_job(job, workspace, names):
            if pair not in seen:
                seen.add(pair)
                yield fault


def _of_job(job: Job, workspace: Workspace, names: Sequence[str]) -> Iterator[tuple[Fault, tuple[str, str]]]:
    project = workspace.project
    try:
        nodes = {node.name: node for node in declared_nodes(workspace, names, Phase.BUILD)}
        order = build_graph(list(nodes.values()), Phase.BUILD).order
        defaults = TargetDefaults.of(project.config)
        replacing = {name for name in order if _overwrites(Target.named(workspace, name), defaults)}
    except LakewrightError:  # reported elsewhere
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
                    yield replace(fault, location=place).about(each.definition.subject)


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
        owner = owner.get(key) if isinstance(owner, Models) else None
    records = owner.get("records") if isinstance(owner, Models) else None
    return records[index] if isinstance(records, list) and isinstance(index, int) else each.definition.raw


def check_pasts(evaluation: Evaluation, lake: Lake) -> None:
    """Report what is wrong with `history_from` of entities, as far as it is known without Spark.

    Columns that are missing are errors. Places that can't be read here are warnings: a run may be able to, or
    need them no longer.
    """
    seen = set()
    for each in evaluation.evaluated:
        entity = each.model
        if not isinstance(entity, Entity) or entity.settings.history_from is None:
            continue
        mark = (each.definition.name, entity.settings.history_from.text)
        if mark in seen:
            continue
        seen.add(mark)
        from lakewright.slices.past_versions import check_past  # only few projects need it

        try:
            check_past(lake, entity)
        except NotInstalled:
            continue  # only Spark can read the place
        except LakewrightError as error:
            at = ("settings", "history_from")
            fault = each.definition.fault(error.message, *at, remedy=error.remedy)
            evaluation.report([fault], is_error="lacks" in error.details)


def check_outputs(evaluation: Evaluation) -> None:
    """Report the outputs that evaluated definitions name and mappings do not have."""
    models = {
        (id(each.workspace), each.definition.name): each.model
        for each in evaluation.evaluated
        if isinstance(each.model, Mapping)
    }
    for each in evaluation.evaluated:
        evaluation.report(_unknown_outputs(each, models), is_error=True)


def _unknown_outputs(each: Evaluated, mappings: Models[tuple[int, str], Mapping]) -> Iterator[Fault]:
    for reference in each.model.references():
        name, is_output, output = reference.name.partition(":")
        found = mappings.get((id(each.workspace), name)) if reference.category == "mapping" else None
        if found is None:
            continue  # that it is unknown or wrong is a fault of its own; another project checks its own
        try:
            if is_output:
                found.check_output(output)
            else:
                found.check_main()
        except SpecError as error:
            place = each.definition.at(*reference.path)
            yield replace(error.faults[0], location=place).about(each.definition.subject)


@dataclass(slots=True)
class Analysis:
    """What Spark says of the mappings.

    Attributes:
        accepted: The number of mappings that it accepts, or rejects.
        errors: What a run would fail with.
        warnings: What a run would warn of, and mappings that it can't analyse yet.
    """

    accepted: int = 0
    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def analyse_with_spark(project: Project, lake: Lake, evaluation: Evaluation) -> Analysis:
    """Let Spark analyse all outputs of the mappings, over relations with their columns but no rows.

    Relations without declared columns are read, if they exist. What those that don't exist leave unknown is
    no fault.
    """
    from pyspark.errors import PySparkException

    analysis = Analysis()
    unknown: dict[str, list[str]] = {}
    analysed: set[str] = set()
    outlines: dict[int, Workspace] = {}
    for each in evaluation.evaluated:
        name = each.definition.name
        if not isinstance(each.model, Mapping) or each.definition.category != "mapping" or name in analysed:
            continue
        outline = outlines.setdefault(
            id(each.workspace), Workspace(project, each.workspace.scope, lake, is_outline=True)
        )
        analysed.add(name)
        try:
            _analyse(each.model, outline, name)
        except TargetError as error:
            if not isinstance(error, ColumnMismatch):
                unknown.setdefault(error.message, []).append(name)
                continue
            analysis.errors.append(replace(error.as_fault(), location=each.definition.at()))
        except SpecError as error:
            analysis.errors += error.faults
        except (PySparkException, LakewrightError) as error:
            said = f"Spark rejects it: {reason_with_position(error)}"
            analysis.errors.append(each.definition.fault(said))
        analysis.accepted += 1
    for outline in outlines.values():
        texts = (each() for notes in outline.notes.values() for each in notes)
        analysis.warnings += (Fault(text) for text in texts if text is not None)
        outline.close()
    analysis.warnings += (
        Fault(f"Spark can't check {_mappings(names)} yet: {why}", remedy="Validate again once it exists.")
        for why, names in unknown.items()
    )
    analysis.errors = list(dict.fromkeys(analysis.errors))
    analysis.warnings = list(dict.fromkeys(analysis.warnings))
    return analysis


def _analyse(mapping: Mapping, outline: Workspace, name: str) -> None:
    for output in mapping.outputs():
        _ = outline.frame(name if output == MAIN else f"{name}:{output}").schema


def _mappings(names: Sequence[str]) -> str:
    return f"mapping{'s'[: len(names) > 1]} {first_of([repr(name) for name in names], 5)}"
