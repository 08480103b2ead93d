"""Running checks and assertions: all counts of one frame in one pass, and other queries one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.checks.check import (
    Answer,
    Assertion,
    Check,
    CheckResult,
    CheckStatus,
    Count,
    CountedAssertion,
    Subject,
    Tally,
    tallied,
)
from lakewright.errors import LakewrightError, TargetError
from lakewright.lake.spark_errors import message_of
from lakewright.spark.functions import functions
from lakewright.spec.suggestions import hint
from lakewright.transform.steps import find_name
from lakewright.workspace.query import all_rows, mapping_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_MOMENT = "while the check ran"

SHOWN_COLUMNS = 8
"""Columns that a page shows of failing rows."""


class AssertionRun:
    """Checks assertions; those that count rows of one mapping are counted in one pass.

    Args:
        workspace: The workspace of the mappings.
        assertions: The assertions that are to be checked, each with a name of its own.
    """

    def __init__(self, workspace: Workspace, assertions: Iterable[Assertion]) -> None:
        self._workspace = workspace
        self._waiting: dict[str, list[CountedAssertion]] = {}
        self._tallies: dict[str, list[Tally]] = {}
        for each in assertions:
            if isinstance(each, CountedAssertion):
                self._waiting.setdefault(each.mapping, []).append(each)

    def failures(self, assertion: Assertion) -> tuple[str, ...]:
        """Return a description of each condition that does not hold; an error while checking is raised."""
        if isinstance(assertion, CountedAssertion):
            self._count(assertion.mapping)
            if (tallies := self._tallies.get(assertion.name)) is not None:
                return assertion.failures(tallies)
        return assertion.check(self._workspace)

    def _count(self, mapping: str) -> None:
        waiting = self._waiting.pop(mapping, [])
        if len(waiting) < 2:  # nothing is saved
            return
        with suppress(Exception):  # one of them fails; each is then checked alone
            frame = self._workspace.frame(mapping)
            counts = {each.name: each.counts(frame) for each in waiting}
            tallies = iter(tallied([count for own in counts.values() for count in own]))
            self._tallies |= {name: list(islice(tallies, len(own))) for name, own in counts.items()}


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A check, and the column that it is declared for."""

    check: Check
    column: str | None = None


def check_not_run(request: CheckRequest, message: str | None = None) -> CheckResult:
    """Return the result of a check that did not run; with a message, of one that cannot run."""
    try:
        label = request.check.label(request.column)
    except LakewrightError as error:
        label, message = request.check.kind, error.message
    return CheckResult(
        kind=request.check.kind,
        label=label,
        column=request.column,
        description=request.check.description,
        status=CheckStatus.NOT_RUN if message is None else CheckStatus.ERROR,
        message=message,
    )


def run_checks(
    workspace: Workspace, read: Callable[[], DataFrame], requests: Sequence[CheckRequest]
) -> list[CheckResult]:
    """Run checks, and return their results in the same order; an error of a check is its result.

    If the rows cannot be read, that error is the result of every check.

    Args:
        workspace: The workspace of the mappings that queries and filters name.
        read: Returns the rows, in the session of the workspace.
        requests: The checks, each with its column.
    """
    try:
        frame = read()
    except Exception as error:  # the page shows any error of Spark
        return [check_not_run(each, message_of(error, _MOMENT)) for each in requests]
    begun = [_begin(workspace, frame, each) for each in requests]
    tallies = _count([each for each in begun if isinstance(each, Count)])
    return [
        _counted(request, each, tallies.get(id(each))) if isinstance(each, Count) else each
        for request, each in zip(requests, begun, strict=True)
    ]


def _begin(workspace: Workspace, frame: DataFrame, request: CheckRequest) -> Count | CheckResult:
    """Return what to count for a check, or its result."""
    try:
        for name in request.check.columns_needed(request.column):
            names = (name, name.partition(".")[0])
            if all(find_name(frame.columns, each) is None for each in names):
                raise TargetError(f"there is no column {name!r}; {hint(name, frame.columns)}")
        found = request.check.count(_subject(workspace, frame, request))
    except Exception as error:  # such as an unknown column; the page shows it
        return check_not_run(request, message_of(error, _MOMENT))
    if isinstance(found, Answer):
        status = CheckStatus.SUCCESS if found.holds else CheckStatus.FAILED
        return replace(check_not_run(request), status=status, message=found.message)
    return found


def _subject(workspace: Workspace, frame: DataFrame, request: CheckRequest) -> Subject:
    """Return the rows that a check selects; a filter with a subquery gives a frame of its own."""
    condition = request.check.filter
    if condition is None:
        return Subject(workspace, frame, functions.lit(True), request.column)
    mappings = tuple(name for name in mapping_names(all_rows("__this__", condition)) if name != "__this__")
    if mappings:
        with workspace.views(mappings):
            return Subject(workspace, frame.where(condition), functions.lit(True), request.column)
    selected = functions.coalesce(functions.expr(condition).cast("boolean"), functions.lit(False))
    return Subject(workspace, frame, selected, request.column)


def _count(counts: Sequence[Count]) -> dict[int, Tally]:
    """Return the tally of each count by its id; none for the counts of a frame where one of them fails."""
    found: dict[int, Tally] = {}
    for frame in {id(each.frame): each.frame for each in counts}.values():
        own = [each for each in counts if each.frame is frame]
        with suppress(Exception):  # each is then counted alone, to find out which one fails
            found |= zip(map(id, own), tallied(own, SHOWN_COLUMNS), strict=True)
    return found


def _counted(request: CheckRequest, count: Count, tally: Tally | None) -> CheckResult:
    try:
        found = tally or tallied([count], SHOWN_COLUMNS)[0]
    except Exception as error:  # the page shows it
        return check_not_run(request, message_of(error, _MOMENT))
    return replace(
        check_not_run(request),
        status=CheckStatus.FAILED if found.failed else CheckStatus.SUCCESS,
        passed=found.passed,
        failed=found.failed,
        sample=found.sample,
    )
