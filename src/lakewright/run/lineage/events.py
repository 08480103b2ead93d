"""OpenLineage events, made with the classes of the project's client, and the datasets that they name.

A run of a job is the parent of one run for each target in a phase. Their ids follow from the job's run id.
Nothing here starts Spark, and no Spark job runs: columns of Delta tables are read from their logs, and the
lineage of a mapping's columns from its plan, if a session runs already.

Source: OpenLineage's specification 2-0-2, "Naming" and its facets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from lakewright.documentation.document import Ref, Source, origins_of
from lakewright.documentation.gathering.spark_plan import column_sources
from lakewright.errors import Fault, LakewrightError
from lakewright.lake.delta_log import state_of
from lakewright.lake.observation import open_log
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.spec.models.places import Address
from lakewright.targets.lease import table_resource

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from lakewright.lake.lake import Lake
    from lakewright.plan.phase import Phase
    from lakewright.spec.models.column import Column
    from lakewright.spec.models.entity import Entity
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace


SPARK_CATALOG = "spark_catalog"
"""The namespace of tables that only have a name in Spark's catalog."""

Sources = tuple[tuple["DatasetName", str], ...]
"""Columns of other datasets."""


@dataclass(frozen=True, slots=True, order=True)
class DatasetName:
    """The name of a dataset, as other tools name it too."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that a target reads or writes.

    Attributes:
        columns: Names and types of its columns; none if they are not known.
        lineage: For columns that are written, the columns that they are computed from.
    """

    name: DatasetName
    columns: tuple[tuple[str, str], ...] = ()
    lineage: Mapping[str, Sources] = field(default_factory=dict)


def dataset_name(resource: Resource) -> DatasetName:
    """Return the name of a resource.

    Example:
        >>> dataset_name(Resource.file("s3a://lake/silver/orders"))
        DatasetName(namespace='s3://lake', name='silver/orders')
        >>> dataset_name(Resource.file("/lake/bronze/orders/*")).name
        '/lake/bronze/orders'
    """
    name = resource.name.removesuffix("/*")
    if resource.category == "table":
        return DatasetName(SPARK_CATALOG, name)
    if resource.category == "jdbc":
        place, _, table = name.removeprefix("jdbc:").rpartition("/")
        return DatasetName(place, table)
    scheme, separator, rest = name.partition("://")
    if not separator:
        return DatasetName("file", name)
    host, _, path = rest.partition("/")
    return DatasetName(f"{scheme}://{host}", path or "/")


def inputs_of(target: Target, workspace: Workspace, phase: Phase) -> tuple[Dataset, ...]:
    """Return what a target reads in a phase."""
    entity = _entity_of(target, workspace)
    declared = () if entity is None else _bronze_columns(entity)
    found = {dataset_name(each): each for each in sorted(target.requires(workspace, phase), key=str)}
    return tuple(
        Dataset(name, _columns(workspace.lake, resource) or declared) for name, resource in found.items()
    )


def outputs_of(target: Target, workspace: Workspace, phase: Phase) -> tuple[Dataset, ...]:
    """Return what a target writes in a phase."""
    found = {dataset_name(each): each for each in sorted(target.provides(workspace, phase), key=str)}
    lineage = _lineage(target, workspace, phase) if found else {}
    return tuple(
        Dataset(name, _columns(workspace.lake, resource), lineage) for name, resource in found.items()
    )


def entity_datasets(entity: Entity, workspace: Workspace) -> dict[str, tuple[Dataset, ...]]:
    """Return the slices of an entity as input, and its silver table as output."""
    places = entity.places(workspace.lake.settings)
    slices = dataset_name(Resource.file(f"{places.slices.folder}/*"))
    silver = table_resource(places.silver)
    table = Dataset(dataset_name(silver), _columns(workspace.lake, silver), _entity_lineage(entity, slices))
    return {"inputs": (Dataset(slices, _bronze_columns(entity)),), "outputs": (table,)}


def _declared(entity: Entity) -> Iterator[Column]:
    """Yield the columns that an entity takes from its slices."""
    return (each for each in entity.columns if not each.is_calculated)


def _bronze_columns(entity: Entity) -> tuple[tuple[str, str], ...]:
    return tuple((each.source, each.type.ddl if each.type else "") for each in _declared(entity))


def _entity_of(target: Target, workspace: Workspace) -> Entity | None:
    """Return the entity that a target processes; None for other targets."""
    return workspace.entity(str(getattr(target, "entity", ""))) if target.kind == "entity" else None


def _entity_lineage(entity: Entity, slices: DatasetName) -> dict[str, Sources]:
    return {each.silver: ((slices, each.source),) for each in _declared(entity)}


def _columns(lake: Lake, resource: Resource) -> tuple[tuple[str, str], ...]:
    """Return the columns of a Delta table whose log can be read without Spark."""
    if resource.category != "file" or resource.name.endswith("*"):
        return ()
    try:
        table = open_log(lake, Address(location=resource.name)).table
    except LakewrightError:
        return ()
    return () if table is None else tuple((each.name, each.type.ddl) for each in state_of(table).columns)


def _lineage(target: Target, workspace: Workspace, phase: Phase) -> Mapping[str, Sources]:
    if (entity := _entity_of(target, workspace)) is not None:
        inputs = [dataset_name(each) for each in target.requires(workspace, phase)]
        return _entity_lineage(entity, inputs[0]) if inputs else {}
    mapping = getattr(target, "mapping", None)
    if not isinstance(mapping, str) or not workspace.lake.is_started:
        return {}
    try:
        return dict(_mapping_lineage(workspace, mapping))
    except Exception:  # a plan that cannot be read must not cost the rest of the event
        return {}


def _mapping_lineage(workspace: Workspace, mapping: str) -> Iterator[tuple[str, Sources]]:
    """Yield the columns of a mapping with those of relations that they are computed from."""
    outline = workspace.outline()

    @cache
    def direct(name: str) -> Mapping[str, tuple[Source, ...]]:
        return column_sources(outline, name.partition(":")[0]) or {}

    def onwards(source: Source) -> tuple[Source, ...]:
        is_mapping = source.item.category == "mapping"
        return direct(source.item.name).get(source.column, ()) if is_mapping else ()

    @cache
    def place(relation: str) -> DatasetName | None:
        found = sorted(workspace.relation(relation).resources(workspace), key=str)
        return dataset_name(found[0]) if found else None

    for column in direct(mapping):
        origins = origins_of(Source(Ref("mapping", mapping), column), onwards)
        named = ((place(each.item.name), each.column) for each in origins)
        sources = dict.fromkeys((where, name) for where, name in named if where is not None)
        if sources:
            yield column, tuple(sources)


Assertions = Sequence[tuple[str, bool]]
"""Names of assertions, and whether each holds."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an event is about: the run of a job, or of a target in a phase.

    Attributes:
        job: Its name in OpenLineage.
        kind: JOB, TARGET or COMMAND.
        parent: The run that it is a part of.
        processing: The versions of the engine.
    """

    namespace: str
    job: str
    run_id: str
    kind: str
    parent: Subject | None = None
    description: str | None = None


def run_uuid(run_id: str, *parts: object) -> str:
    """Return the id of a run, or of a part of it; OpenLineage requires UUIDs.

    Example:
        >>> run_uuid("9c26b44f-20e2-4cda-bf2e-4c7948f78e16")
        '9c26b44f-20e2-4cda-bf2e-4c7948f78e16'
    """
    if not parts:
        try:
            return str(UUID(run_id))
        except ValueError:
            return str(uuid5(NAMESPACE_URL, run_id))
    return str(uuid5(NAMESPACE_URL, "/".join(map(str, (run_id, *parts)))))


def event_state(status: Status) -> str:
    """Return the type of the event that reports an end."""
    if status is Status.ABORTED:
        return "ABORT"
    return "FAIL" if status.is_failure else "COMPLETE"


def run_event(
    subject: Subject,
    state: str,
    at: datetime,
    *,
    inputs: Sequence[Dataset] = (),
    outputs: Sequence[Dataset] = (),
    metrics: Mapping[str, Any] | None = None,
    assertions: Assertions = (),
    error: Fault | None = None,
) -> RunEvent:
    """Return an event.

    Args:
        subject: What it is about.
        state: START, COMPLETE, FAIL or ABORT.
        at: When it happened.
        inputs: What a target reads.
        outputs: What it writes.
        metrics: Its metrics.
        assertions: The assertions that it checked.
        error: What it failed with.
    """
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

    of_run, of_job = _run_facets(subject, error), _job_facets(subject)
    of_input = _input_facets(assertions)
    of_output = _output_facets(metrics or {}) if len(outputs) == 1 else {}
    return RunEvent(
        eventType=RunState[state],
        eventTime=at.isoformat(),
        run=Run(runId=subject.run_id, facets=of_run),
        job=Job(namespace=subject.namespace, name=subject.job, facets=of_job),
        inputs=[
            InputDataset(
                each.name.namespace, each.name.name, facets=_dataset_facets(each), inputFacets=of_input
            )
            for each in inputs
        ],
        outputs=[
            OutputDataset(
                each.name.namespace, each.name.name, facets=_dataset_facets(each), outputFacets=of_output
            )
            for each in outputs
        ],
        producer=_producer(),
    )


def _producer() -> str:
    return f"urn:lakewright:{version('lakewright')}"


def _run_facets(subject: Subject, error: Fault | None) -> dict[str, Any]:
    from openlineage.client.generated import error_message_run, parent_run, processing_engine_run

    facets: dict[str, Any] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=version("lakewright"), name="lakewright", producer=_producer()
        )
    }
    if (parent := subject.parent) is not None:
        run = parent_run.Run(runId=parent.run_id)
        job = parent_run.Job(namespace=parent.namespace, name=parent.job)
        facets["parent"] = parent_run.ParentRunFacet(run=run, job=job, producer=_producer())
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=error.message, programmingLanguage="python", producer=_producer()
        )
    return facets


def _job_facets(subject: Subject) -> dict[str, Any]:
    from openlineage.client.generated import documentation_job, job_type_job

    facets: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="LAKEWRIGHT", jobType=subject.kind, producer=_producer()
        )
    }
    if subject.description:
        documented = documentation_job.DocumentationJobFacet(subject.description, producer=_producer())
        facets["documentation"] = documented
    return facets


def _input_facets(assertions: Assertions) -> dict[str, Any]:
    from openlineage.client.generated import data_quality_assertions_dataset as made

    if not assertions:
        return {}
    checked = [made.Assertion(assertion=name, success=holds) for name, holds in assertions]
    facet = made.DataQualityAssertionsDatasetFacet(checked, producer=_producer())
    return {"dataQualityAssertions": facet}


def _output_facets(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of rows that a target wrote: of a relation, or changed by slices."""
    from openlineage.client.generated import output_statistics_output_dataset as made

    rows, slices = metrics.get("target_records"), metrics.get("slices")
    if rows is None and isinstance(slices, Sequence):
        effects = ("inserted", "updated", "deleted")
        rows = sum(int(each.get(effect) or 0) for each in slices for effect in effects)
    if rows is None:
        return {}
    facet = made.OutputStatisticsOutputDatasetFacet(rowCount=int(rows), producer=_producer())
    return {"outputStatistics": facet}


def _dataset_facets(dataset: Dataset) -> dict[str, Any]:
    from openlineage.client.generated import column_lineage_dataset, schema_dataset

    facets: dict[str, Any] = {}
    if dataset.columns:
        fields = [
            schema_dataset.SchemaDatasetFacetFields(name=name, type=kind or None)
            for name, kind in dataset.columns
        ]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=_producer())
    if dataset.lineage:
        made = column_lineage_dataset
        facets["columnLineage"] = made.ColumnLineageDatasetFacet(
            fields={
                column: made.Fields(
                    [made.InputField(place.namespace, place.name, name) for place, name in sources]
                )
                for column, sources in dataset.lineage.items()
            },
            producer=_producer(),
        )
    return facets
