"""The project's documentation, written for one instance of a job without running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from lakewright.documentation.document import Document
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.documentation.settings import documentation_settings
from lakewright.documentation.write import write_documentation
from lakewright.errors import UsageError
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal, Run
from lakewright.plan.arguments import expand_arguments
from lakewright.spark.session import NoSession
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import render_value
from lakewright.spec.project import Project
from lakewright.targets.context import Context
from lakewright.workspace.workspace import Workspace

__all__ = ["Docs", "DocsRequest", "write_docs"]

_WITH_SPARK = frozenset({"checks", "lineage"})


@dataclass(frozen=True, slots=True)
class DocsRequest:
    """What is asked for.

    Attributes:
        job: Whose names expressions are evaluated with; that of the last run unless given.
        arguments: As for running it; of several instances the last one is taken.
        is_offline: Start no Spark: checks aren't tried, columns told as far as they are known.
    """

    job: str | None = None
    arguments: tuple[str, ...] = ()
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class Docs:
    """What was written: the document, and the file to open of each generator."""

    document: Document
    files: tuple[Path, ...]


def write_docs(
    project: Project,
    lake: Lake,
    journal: Journal,
    context: Callable[[Workspace], Context],
    request: DocsRequest,
) -> Docs:
    """Return the documentation, written where the project's settings say.

    Raises:
        SpecError: Settings, job or arguments are wrong; nothing was written.
    """
    last = next(journal.runs(1, project=project.name, job=request.job), None)
    job, arguments = _job(project, last, request)
    scope, parameters = _instance(project, job, arguments)
    if request.is_offline:
        error = UsageError("not known without Spark", remedy="Leave out --no-checks.")
        lake = Lake(lake.settings, lake.session, sessions=NoSession(error))
    workspace = Workspace(project.within(scope), scope, lake)
    settings = documentation_settings(workspace)
    asked = DocumentRequest(
        collected=settings.collected - (_WITH_SPARK if request.is_offline else frozenset()),
        tool=f"Lakewright {version('lakewright')}",
        job=job,
        parameters=parameters,
        last_run=last,
    )
    document = gather_document(context(workspace), asked)
    files = [write_documentation(document, generator, workspace) for generator in settings.generators]
    return Docs(document, tuple(files))


def _job(project: Project, last: Run | None, request: DocsRequest) -> tuple[str | None, tuple[str, ...]]:
    if request.job is not None:
        return request.job, request.arguments
    if last is None or last.job not in project.jobs:
        return None, ()
    return last.job, tuple(f"{name}={value}" for name, value in last.parameters.items())


def _instance(project: Project, name: str | None, arguments: tuple[str, ...]) -> tuple[Scope, dict[str, str]]:
    """Return the names of a job's last instance, and its parameters."""
    if name is None:
        return project.scope, {}
    job = project.job(name)
    outer = project.scope.instance(job.environment)
    *_, values = [
        dict(each) for each in expand_arguments(job.parameters, arguments, outer, may_be_hidden=True)
    ]
    texts = {parameter: render_value(value) for parameter, value in values.items()}
    return project.scope.instance(job.environment, values), texts
