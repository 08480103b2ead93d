"""The `validate` and `verify` targets, which check assertions and act on failed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.checks.check import Assertion
from lakewright.checks.run import AssertionRun
from lakewright.errors import VerificationError
from lakewright.errors.phrase import Command, Phrase
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.spec.models.base import KindOf, NamedMap, Reference, from_text
from lakewright.spec.suggestions import member_named
from lakewright.targets.context import Context
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["AssertionTarget", "ErrorMode", "ValidateTarget", "VerifyTarget"]


class ErrorMode(StrEnum):
    """Whether a failed assertion skips the remaining ones, and whether it fails the target."""

    FAIL_FAST = "failFast"
    FAIL_AT_END = "failAtEnd"
    FAIL_NEVER = "failNever"


_REMEDY = Phrase(
    Command("sql"), " shows what the assertion reads. Correct that, or what it expects, then run again."
)


def _with_names(declared: Any) -> Any:
    if isinstance(declared, (list, tuple)):
        return {f"assertion {index}": each for index, each in enumerate(declared, 1)}
    return declared


ErrorModeText = Annotated[ErrorMode, from_text(lambda text: member_named(ErrorMode, text) or text)]
Assertions = Annotated[NamedMap[Annotated[Assertion, KindOf("assertion")]], BeforeValidator(_with_names)]


class AssertionTarget(Target):
    """Checks assertions in the order of their declaration."""

    feeds_others: ClassVar[bool] = False

    assertions: Assertions = Declared(default_factory=dict, description="Assertions to check, by name.")
    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_AT_END,
        description="Whether a failed assertion stops the target, fails it at the end, or only warns.",
    )

    def references(self) -> Iterable[Reference]:
        """Return the references of the assertions."""
        return [
            each
            for name, assertion in self.assertions.items()
            for each in assertion.references_below("assertions", name)
        ]

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the assertions read."""
        return frozenset().union(*(each.requires(workspace) for each in self.assertions.values()))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Check the assertions.

        Raises:
            VerificationError: An assertion fails, and the mode is not failNever. An error while checking is
                raised in every mode.
        """
        run = AssertionRun(context.workspace, self.assertions.values())
        failures: dict[str, tuple[str, ...]] = {}
        for number, (name, assertion) in enumerate(self.assertions.items()):
            with self.located(context.workspace, assertion.label, ("assertions", name, number)):
                found = run.failures(assertion)
            if found:
                failures[assertion.label] = found
                if self.mode is ErrorMode.FAIL_FAST:
                    break
        metrics = self._metrics(failures)
        if not failures:
            return Outcome(metrics=metrics)
        error = VerificationError(self._message(failures), remedy=_REMEDY, details={"failures": failures})
        if self.mode is not ErrorMode.FAIL_NEVER:
            raise error
        return Outcome(Status.SUCCESS_WITH_ERRORS, metrics=metrics, error=error.as_fault())

    def _message(self, failures: Mapping[str, tuple[str, ...]]) -> str:
        count = len(failures)
        total = len(self.assertions)
        listed = "; ".join(_texts(failures))
        return (
            f"{self.label}: {count} of {total} {'assertion' if total == 1 else 'assertions'} failed: {listed}"
        )

    def _metrics(self, failures: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        return {"assertions": len(self.assertions), "assertions_failed": len(failures)}


def _texts(failures: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    for label, texts in failures.items():
        yield f"{label}: {'; '.join(texts)}"


class ValidateTarget(AssertionTarget):
    """Checks assertions in VALIDATE, and by default stops at the first one that fails."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VALIDATE})

    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_FAST,
        description="Whether a failed assertion stops the target, fails it at the end, or only warns.",
    )


class VerifyTarget(AssertionTarget):
    """Checks assertions in VERIFY, and by default all of them even if one fails."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})
