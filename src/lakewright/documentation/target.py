"""The `documentation` target: writes the project's documentation after everything is built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field as Declared
from pydantic import ValidationError

from lakewright.documentation.document import Document
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.documentation.pages.rendering import check_counts, html_files, markdown_files
from lakewright.errors import Fault, Location, SpecError, VerificationError
from lakewright.lake.files import LocalFiles
from lakewright.lake.paths import local_path
from lakewright.manifest.journal import Journal
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.spec.definitions.definition import faults_of, render_tree
from lakewright.spec.models.base import Listed
from lakewright.spec.models.documentation import Collector, DocumentationFile, DocumentationFormat, Generator
from lakewright.spec.reading.files import DOCUMENTATION_FILE
from lakewright.spec.words import counted
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace


def documentation_settings(workspace: Workspace) -> DocumentationFile:
    """Return the settings of the project's documentation; by default, one HTML page.

    Raises:
        SpecError: An expression is invalid, or a field is invalid once expressions are evaluated.
    """
    declared: Any = workspace.project.documentation or {}
    faults: list[Fault] = []
    rendered = render_tree(declared, workspace.scope.render, lambda error, _: faults.extend(error.faults))
    if faults:
        raise SpecError(faults)
    try:
        found = DocumentationFile.model_validate(rendered)
    except ValidationError as error:
        where = Location(DOCUMENTATION_FILE)
        raise SpecError(faults_of(error, "documentation", lambda _: where, is_rendered=True)) from None
    return found if found.generators else found.model_copy(update={"generators": (Generator(),)})


def folder_of(generator: Generator, workspace: Workspace) -> Path:
    """Return the folder of a generator.

    Raises:
        SpecError: The folder is not on a local file system.
    """
    local = local_path(workspace.resolve_location(generator.location))
    if local is None:
        raise SpecError.of(
            f"documentation cannot be written to {generator.location}",
            remedy="Name a local folder, and copy the files from there.",
        )
    return local


def write_documentation(document: Document, generator: Generator, workspace: Workspace) -> Path:
    """Write the files of a generator, and return the one to open; other files in the folder are kept."""
    folder = folder_of(generator, workspace)
    shown = document.only(lambda ref: generator.shows(ref.category, ref.name, document.project))
    files = _files(shown, generator.template)
    for name, text in files.items():
        LocalFiles().write(str(folder / name), text.encode(errors="backslashreplace"))
    return folder / next(iter(files))


def _files(document: Document, template: DocumentationFormat) -> Mapping[str, str]:
    if template is DocumentationFormat.JSON:
        return json_files(document)
    if template is DocumentationFormat.MARKDOWN:
        return markdown_files(document)
    return html_files(document, is_inline=template is DocumentationFormat.HTML)


def json_files(document: Document) -> Mapping[str, str]:
    """Return the file's text by its name."""
    return {"documentation.json": json.dumps(document.as_json(), indent=2, ensure_ascii=False) + "\n"}


class DocumentTarget(Target):
    """Writes the project's documentation, with lineage and the results of checks.

    Keys that it lacks are taken from `documentation.yml`.
    """

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})
    feeds_others: ClassVar[bool] = False

    collectors: Listed[Collector] = Declared(
        default=(), description="What to collect; by default everything."
    )
    generators: Listed[Generator] = Declared(default=(), description="What to write.")

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the folders that the generators write."""
        generators = self._settings(workspace).generators
        return frozenset(Resource.file(str(folder_of(each, workspace))) for each in generators)

    def observe(self, context: Context) -> Observation:
        """Return an empty observation, because every run writes the documentation again."""
        return Observation(f"target:{self.name}")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Run the checks and write the files."""
        settings = self._settings(context.workspace)
        run = Journal(context.ledger.store).run(context.run_id)
        document = gather_document(
            context,
            DocumentRequest(
                collected=settings.collected,
                job=run.job if run else None,
                parameters={name: str(value) for name, value in run.parameters.items()} if run else {},
                last_run=run,
            ),
        )
        for generator in settings.generators:
            write_documentation(document, generator, context.workspace)
        failed = failed_checks(document)
        metrics = check_metrics(document)
        if not failed:
            return Outcome(metrics=metrics)
        return Outcome(Status.SUCCESS_WITH_ERRORS, metrics=metrics, error=_failed(self.label, failed))

    def _settings(self, workspace: Workspace) -> DocumentationFile:
        file = documentation_settings(workspace)
        return DocumentationFile(
            collectors=self.collectors or file.collectors, generators=self.generators or file.generators
        )


def _failed(label: str, failed: Sequence[str]) -> Fault:
    count, listed = counted(len(failed), "check"), "; ".join(failed)
    return Fault(
        f"{label}: {count} failed: {listed}",
        remedy="Correct the rows, or what the check declares, then run again: "
        "the written documentation shows each check.",
        code=VerificationError.code,
    )


def check_metrics(document: Document) -> Mapping[str, int]:
    """Return the number of checks that ran, and of those that failed."""
    counts = check_counts(check for _, check in document.checks())
    return {"checks": counts.completed, "checks_failed": counts.failed}


def failed_checks(document: Document) -> list[str]:
    """Return a description of each failed check."""
    found = []
    for item, check in document.checks():
        if check.is_bad:
            what = f"{check.failed:,} failed" if check.failed else check.message or "does not hold"
            found.append(f"{item.ref.category} {item.ref.name}: {check.label}: {what}")
    return found
