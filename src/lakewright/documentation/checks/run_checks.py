"""Running checks: conditions and keys are counted in one pass over a frame, queries run one by one.

Failing rows are read only if the count says that there are some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from lakewright.documentation.checks.check import Check, KeyCheck, QueryCheck, RowCheck
from lakewright.documentation.document import CheckResult, CheckStatus, Sample
from lakewright.errors import LakewrightError, TargetError
from lakewright.lake.columns import column as column_of
from lakewright.lake.spark_errors import analysis_error, first_line, query_failure
from lakewright.spec.suggestions import hint
from lakewright.transform.steps import find_name
from lakewright.workspace.query import all_rows, mapping_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CheckRequest", "check_not_run", "run_checks"]

SHOWN_ROWS = 5
SHOWN_COLUMNS = 8
LONGEST_VALUE = 80
"""Rows, columns and characters of each value that a page shows of failing rows."""

Rows: TypeAlias = "Callable[[], DataFrame]"
"""A function that returns the frame of the rows that fail."""


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
    """Run checks, and return their results in the same order.

    An error of a check is its result. If the rows cannot be read, that error is the result of every check.

    Args:
        workspace: The workspace of the mappings that queries and filters name.
        read: Returns the rows, in the session of the workspace.
        requests: The checks, each with its column.
    """
    try:
        frame = read()
    except Exception as error:  # the page shows any error of Spark
        return [check_not_run(each, _message(error)) for each in requests]
    return list(_CheckRun(workspace, frame).results(requests))


@dataclass(frozen=True, slots=True)
class _Tally:
    """A check that is counted together with others, as two aggregates."""

    request: CheckRequest
    frame: DataFrame
    columns: tuple[Column, Column]
    rows: Rows

    def result(self, first: int, second: int) -> CheckResult:
        """Return the result: of two counts, passed and failed rows; for a key, distinct keys and rows."""
        is_key = isinstance(self.request.check, KeyCheck)
        failed = second - first if is_key else second
        return _counted_result(self.request, first, failed, self.rows)


@dataclass(frozen=True, slots=True)
class _CheckRun:
    """Runs the checks of one frame."""

    workspace: Workspace
    frame: DataFrame

    def results(self, requests: Sequence[CheckRequest]) -> Iterable[CheckResult]:
        found: dict[int, CheckResult] = {}
        tallies: dict[int, _Tally] = {}
        for index, each in enumerate(requests):
            try:
                self._check_columns(each)
                result = self._prepare(each)
            except Exception as error:  # such as an unknown column; the page shows it
                result = check_not_run(each, _message(error))
            if isinstance(result, _Tally):
                tallies[index] = result
            else:
                found[index] = result
        found |= _count_together(tallies)
        return [found[index] for index in range(len(requests))]

    def _check_columns(self, request: CheckRequest) -> None:
        """Raise an error if the check applies to a column that the rows lack."""
        check = request.check
        names = check.key(request.column) if isinstance(check, KeyCheck) else (request.column,)
        for name in filter(None, names):
            if (
                find_name(self.frame.columns, name) is None
                and find_name(self.frame.columns, name.partition(".")[0]) is None
            ):
                raise TargetError(f"there is no column {name!r}; {hint(name, self.frame.columns)}")

    def _prepare(self, request: CheckRequest) -> _Tally | CheckResult:
        check = request.check
        if isinstance(check, RowCheck | KeyCheck):
            tally = (
                self._row_tally(request, check)
                if isinstance(check, RowCheck)
                else self._key_tally(request, check)
            )
            # Spark analyses each check alone first, so that an error is the error of one check.
            _ = tally.frame.agg(*tally.columns).schema
            return tally
        if not isinstance(check, QueryCheck):
            return check_not_run(request, f"checks of kind {check.kind} cannot run")
        count = check.count(request.column, self._filtered(check.filter), self.workspace)
        if count.holds is not None:
            status = CheckStatus.SUCCESS if count.holds else CheckStatus.FAILED
            return replace(check_not_run(request), status=status, message=count.message)
        failing = count.failing
        rows = None if failing is None else lambda: failing
        return _counted_result(request, count.passed or 0, count.failed or 0, rows)

    def _row_tally(self, request: CheckRequest, check: RowCheck) -> _Tally:
        from pyspark.sql import functions

        frame, selected = self._subject(check)
        rows = check.rows(request.column, frame)
        selected = selected if rows is None else selected & rows
        holds = functions.coalesce(check.condition(request.column, frame), functions.lit(False))
        counts = (functions.count_if(selected & holds), functions.count_if(selected & ~holds))
        return _Tally(
            request, frame, counts, lambda: _with_column_first(frame.where(selected & ~holds), request.column)
        )

    def _key_tally(self, request: CheckRequest, check: KeyCheck) -> _Tally:
        from pyspark.sql import functions

        frame, selected = self._subject(check)
        names = check.key(request.column)
        is_there = functions.lit(False)
        for name in names:
            is_there |= column_of(name).isNotNull()
        selected &= is_there
        key = functions.struct(*(column_of(name).alias(f"k{n}") for n, name in enumerate(names)))
        counts = (functions.count_distinct(functions.when(selected, key)), functions.count_if(selected))

        def repeated() -> DataFrame:
            grouped = frame.where(selected).groupBy(*map(column_of, names))
            return (
                grouped.agg(functions.count("*").alias("rows"))
                .where("rows > 1")
                .orderBy(functions.desc("rows"))
            )

        return _Tally(request, frame, counts, repeated)

    def _subject(self, check: Check) -> tuple[DataFrame, Column]:
        """Return the frame and the condition of the rows to count.

        A filter with a subquery gives a frame of its own.
        """
        from pyspark.sql import functions

        if check.filter is None:
            return self.frame, functions.lit(True)
        if _mappings_in(check.filter):
            return self._filtered(check.filter), functions.lit(True)
        condition = functions.expr(check.filter).cast("boolean")
        return self.frame, functions.coalesce(condition, functions.lit(False))

    def _filtered(self, condition: str | None) -> DataFrame:
        if condition is None:
            return self.frame
        with self.workspace.views(_mappings_in(condition)):
            return self.frame.where(condition)


def _mappings_in(condition: str) -> tuple[str, ...]:
    return tuple(name for name in mapping_names(all_rows("__this__", condition)) if name != "__this__")


def _count_together(tallies: dict[int, _Tally]) -> dict[int, CheckResult]:
    """Return the results of checks, counted in one pass for each frame."""
    found: dict[int, CheckResult] = {}
    frames = {id(tally.frame): tally.frame for tally in tallies.values()}
    for key, frame in frames.items():
        group = {index: tally for index, tally in tallies.items() if id(tally.frame) == key}
        try:
            found |= _count(frame, group)
        except Exception:  # one check fails on some row; each runs alone to find out which
            for index, tally in group.items():
                try:
                    found |= _count(frame, {index: tally})
                except Exception as error:  # the page shows it
                    found[index] = check_not_run(tally.request, _message(error))
    return found


def _count(frame: DataFrame, tallies: dict[int, _Tally]) -> dict[int, CheckResult]:
    (row,) = frame.agg(*(column for tally in tallies.values() for column in tally.columns)).collect()
    numbers = list(row)
    return {
        index: tally.result(*numbers[2 * place : 2 * place + 2])
        for place, (index, tally) in enumerate(tallies.items())
    }


def _counted_result(request: CheckRequest, passed: int, failed: int, rows: Rows | None) -> CheckResult:
    is_shown = failed > 0 and rows is not None
    return replace(
        check_not_run(request),
        status=CheckStatus.FAILED if failed else CheckStatus.SUCCESS,
        passed=passed,
        failed=failed,
        sample=_sample(rows()) if is_shown and rows is not None else Sample(),
    )


def _with_column_first(frame: DataFrame, column: str | None) -> DataFrame:
    """Return the frame with the checked column first."""
    names = (
        [column, *(name for name in frame.columns if name.lower() != column.lower())]
        if column
        else frame.columns
    )
    return frame.select(*map(column_of, names))


def _sample(frame: DataFrame) -> Sample:
    names = frame.columns[:SHOWN_COLUMNS]
    rows = frame.select(*(column_of(name).cast("string").alias(name) for name in names)).limit(SHOWN_ROWS)
    shown = tuple(tuple(map(_cut, row)) for row in rows.collect())
    return Sample(tuple(names), shown, left_out=tuple(frame.columns[SHOWN_COLUMNS:]))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


def _message(error: Exception) -> str:
    if isinstance(error, LakewrightError):
        return error.message
    if isinstance(error, analysis_error()):
        return f"Spark rejects it: {first_line(error)}"
    if (found := query_failure(error, "while the check ran")) is not None:
        return found.message
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"
