"""Write the project's documentation, with the values of one instance of a job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakewright.app import App
from lakewright.documentation.document import Document
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.documentation.target import documentation_settings, write_documentation
from lakewright.errors import UsageError
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Run
from lakewright.spark.session import NoSession
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import render_value
from lakewright.spec.project import Project
from lakewright.workspace.workspace import Workspace

_WITH_SPARK = frozenset({"checks", "lineage"})


@dataclass(frozen=True, slots=True)
class Documentation:
    """Documentation that was written.

    Attributes:
        files: The file to open first of each generator.
    """

    document: Document
    files: tuple[Path, ...]


def document_project(
    app: App, job: str | None = None, arguments: tuple[str, ...] = (), *, is_offline: bool = False
) -> Documentation:
    """Write the project's documentation where `documentation.yml` says, and return it.

    Args:
        app: The project.
        job: The job whose values are used in expressions; by default, that of the last run.
        arguments: The job's arguments, as for a run; of several instances, the last one is used.
        is_offline: Do not start Spark: checks do not run, and columns are documented as far as known.

    Raises:
        SpecError: `documentation.yml`, the job or its arguments are wrong; nothing was written.
    """
    last = next(app.journal.runs(1, project=app.project.name, job=job), None)
    job, arguments = _job(app.project, last, job, arguments)
    scope, parameters = _instance(app.project, job, arguments)
    workspace = Workspace(
        app.project.within(scope), scope, _without_spark(app.lake) if is_offline else app.lake
    )
    settings = documentation_settings(workspace)
    request = DocumentRequest(
        collected=settings.collected - (_WITH_SPARK if is_offline else frozenset()),
        job=job,
        parameters=parameters,
        last_run=last,
    )
    document = gather_document(app.context(workspace), request)
    files = [write_documentation(document, generator, workspace) for generator in settings.generators]
    return Documentation(document, tuple(files))


def _without_spark(lake: Lake) -> Lake:
    error = UsageError("not known without Spark", remedy="Omit --no-checks.")
    return Lake(lake.settings, lake.session, sessions=NoSession(error), storage=lake.storage)


def _job(
    project: Project, last: Run | None, job: str | None, arguments: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the named job with its arguments, or else those of the last run."""
    if job is not None:
        return job, arguments
    if last is None or last.job not in project.jobs:
        return None, ()
    return last.job, last.arguments


def _instance(project: Project, name: str | None, arguments: tuple[str, ...]) -> tuple[Scope, dict[str, str]]:
    """Return the scope of a job's last instance, and its parameters as text."""
    if name is None:
        return project.scope, {}
    job = project.job(name)
    outer = project.job_scope(job)
    *_, values = [
        dict(each) for each in expand_arguments(job.parameters, arguments, outer, may_be_hidden=True)
    ]
    texts = {parameter: render_value(value) for parameter, value in values.items()}
    return project.job_scope(job, values), texts
