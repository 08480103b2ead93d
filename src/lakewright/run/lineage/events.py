"""OpenLineage events, made with the classes of the project's client.

A run of a job is the parent of one run for each target in a phase. Their ids follow from the job's run id.

Source: OpenLineage's specification 2-0-2 and its facets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from lakewright.errors import Fault
from lakewright.plan.status import Status
from lakewright.run.lineage.datasets import Dataset

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent

__all__ = ["Assertions", "Subject", "event_state", "run_event", "run_uuid"]

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
    """Return the type of the event that tells of an end."""
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
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

    return RunEvent(
        eventType=RunState[state],
        eventTime=at.isoformat(),
        run=Run(runId=subject.run_id, facets=_run_facets(subject, error)),
        job=Job(namespace=subject.namespace, name=subject.job, facets=_job_facets(subject)),
        inputs=[_input(each, assertions) for each in inputs],
        outputs=[_output(each, metrics or {}, is_only=len(outputs) == 1) for each in outputs],
        producer=_producer(),
    )


def _producer() -> str:
    return f"urn:lakewright:{version('lakewright')}"


def _run_facets(subject: Subject, error: Fault | None) -> dict[str, Any]:
    from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
    from openlineage.client.generated.parent_run import Job, ParentRunFacet, Run
    from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet

    facets: dict[str, Any] = {
        "processing_engine": ProcessingEngineRunFacet(
            version=version("lakewright"), name="lakewright", producer=_producer()
        )
    }
    if subject.parent is not None:
        parent = subject.parent
        facets["parent"] = ParentRunFacet(
            run=Run(runId=parent.run_id),
            job=Job(namespace=parent.namespace, name=parent.job),
            producer=_producer(),
        )
    if error is not None:
        facets["errorMessage"] = ErrorMessageRunFacet(
            message=error.message, programmingLanguage="python", producer=_producer()
        )
    return facets


def _job_facets(subject: Subject) -> dict[str, Any]:
    from openlineage.client.generated.documentation_job import DocumentationJobFacet
    from openlineage.client.generated.job_type_job import JobTypeJobFacet

    facets: dict[str, Any] = {
        "jobType": JobTypeJobFacet(
            processingType="BATCH", integration="LAKEWRIGHT", jobType=subject.kind, producer=_producer()
        )
    }
    if subject.description:
        facets["documentation"] = DocumentationJobFacet(subject.description, producer=_producer())
    return facets


def _input(dataset: Dataset, assertions: Assertions) -> InputDataset:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.generated.data_quality_assertions_dataset import (
        Assertion,
        DataQualityAssertionsDatasetFacet,
    )

    facets: dict[str, Any] = {}
    if assertions:
        checked = [Assertion(assertion=name, success=holds) for name, holds in assertions]
        facets["dataQualityAssertions"] = DataQualityAssertionsDatasetFacet(checked, producer=_producer())
    return InputDataset(
        dataset.name.namespace, dataset.name.name, facets=_dataset_facets(dataset), inputFacets=facets
    )


def _output(dataset: Dataset, metrics: Mapping[str, Any], *, is_only: bool) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.generated.output_statistics_output_dataset import (
        OutputStatisticsOutputDatasetFacet,
    )

    rows = _written_rows(metrics)
    facets: dict[str, Any] = {}
    if is_only and rows is not None:
        facets["outputStatistics"] = OutputStatisticsOutputDatasetFacet(rowCount=rows, producer=_producer())
    return OutputDataset(
        dataset.name.namespace, dataset.name.name, facets=_dataset_facets(dataset), outputFacets=facets
    )


def _written_rows(metrics: Mapping[str, Any]) -> int | None:
    """Return how many rows a target wrote: of a relation, or inserted and updated by slices."""
    if "target_records" in metrics:
        return int(metrics["target_records"])
    slices = metrics.get("slices")
    if not isinstance(slices, Sequence):
        return None
    return sum(int(each.get(effect) or 0) for each in slices for effect in ("inserted", "updated", "deleted"))


def _dataset_facets(dataset: Dataset) -> dict[str, Any]:
    from openlineage.client.generated.column_lineage_dataset import (
        ColumnLineageDatasetFacet,
        Fields,
        InputField,
    )
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

    facets: dict[str, Any] = {}
    if dataset.columns:
        fields = [SchemaDatasetFacetFields(name=name, type=type_ or None) for name, type_ in dataset.columns]
        facets["schema"] = SchemaDatasetFacet(fields=fields, producer=_producer())
    if dataset.lineage:
        facets["columnLineage"] = ColumnLineageDatasetFacet(
            fields={
                column: Fields([InputField(place.namespace, place.name, name) for place, name in sources])
                for column, sources in dataset.lineage.items()
            },
            producer=_producer(),
        )
    return facets
