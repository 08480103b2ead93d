"""The `documentation` target: writes the project's documentation after everything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.checks.check import CheckStatus
from lakewright.documentation.document import Document
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.documentation.settings import documentation_settings
from lakewright.documentation.write import folder_of, write_documentation
from lakewright.errors import Fault, VerificationError
from lakewright.manifest.journal import Journal
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.spec.models.base import Listed
from lakewright.spec.models.documentation import Collector, DocumentationFile, Generator
from lakewright.spec.words import counted
from lakewright.targets.context import Context
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["DocumentTarget", "check_metrics", "failed_checks"]


class DocumentTarget(Target):
    """Writes the project's documentation, with lineage and the results of checks.

    Fields that are not declared here are taken from `documentation.yml`. If a check fails, the page shows it,
    and the target ends as SUCCESS_WITH_ERRORS.
    """

    feeds_others: ClassVar[bool] = False

    collectors: Listed[Collector] = Declared(
        default=(), description="What to collect; by default everything."
    )
    generators: Listed[Generator] = Declared(
        default=(), description="What to write; by default a page in generated-documentation."
    )

    def phases(self) -> frozenset[Phase]:
        """Return VERIFY."""
        return frozenset({Phase.VERIFY})

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
                tool=f"Lakewright {version('lakewright')}",
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
    checks = [check for _, check in document.checks() if check.status is not CheckStatus.NOT_RUN]
    return {"checks": len(checks), "checks_failed": sum(check.is_bad for check in checks)}


def failed_checks(document: Document) -> list[str]:
    """Return a description of each failed check."""
    found = []
    for item, check in document.checks():
        if check.is_bad:
            what = f"{check.failed:,} failed" if check.failed else check.message or "does not hold"
            found.append(f"{item.ref.category} {item.ref.name}: {check.label}: {what}")
    return found
