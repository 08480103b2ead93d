"""Trying checks: all that can be are counted in one pass over the rows, the others one after the other.

Rows that fail are only looked for where there are some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from lakewright.documentation.checks.check import Check, KeyCheck, QueryCheck, RowCheck
from lakewright.documentation.document import CheckResult, CheckStatus, Sample
from lakewright.errors import LakewrightError
from lakewright.lake.columns import column as column_of
from lakewright.workspace.query import all_rows, mapping_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CheckRequest", "check_not_run", "run_checks"]

SHOWN_ROWS = 5
SHOWN_COLUMNS = 8
LONGEST = 80

Rows: TypeAlias = "Callable[[], DataFrame]"
"""Makes the frame of the rows that fail."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A check, and the column below which it is written."""

    check: Check
    column: str | None = None


def check_not_run(asked: CheckRequest, message: str | None = None) -> CheckResult:
    """Return the result of a check that isn't tried; with a message, of one that can't be."""
    try:
        label = asked.check.label(asked.column)
    except LakewrightError as error:
        label, message = asked.check.kind, error.message
    return CheckResult(
        kind=asked.check.kind,
        label=label,
        column=asked.column,
        description=asked.check.description,
        status=CheckStatus.NOT_RUN if message is None else CheckStatus.ERROR,
        message=message,
    )


def run_checks(
    workspace: Workspace, read: Callable[[], DataFrame], asked: Sequence[CheckRequest]
) -> list[CheckResult]:
    """Return how each check ended, in the order given.

    What goes wrong with one is its result; where the rows can't be read, it is the result of all.

    Args:
        workspace: Of the mappings that queries and filters name.
        read: Gives the rows, in the workspace's session.
        asked: The checks.
    """
    try:
        frame = read()
    except Exception as error:  # whatever Spark says is told on the page
        return [check_not_run(each, _told(error)) for each in asked]
    return list(_Trial(workspace, frame).results(asked))


@dataclass(frozen=True, slots=True)
class _Tally:
    """A check that is counted together with others: two numbers, and what makes failures of them."""

    asked: CheckRequest
    frame: DataFrame
    columns: tuple[Column, Column]
    rows: Rows

    def result(self, first: int, second: int) -> CheckResult:
        """Return what the two numbers come to; of a key they are keys and rows."""
        is_key = isinstance(self.asked.check, KeyCheck)
        failed = second - first if is_key else second
        return _counted(self.asked, first, failed, self.rows)


@dataclass(frozen=True, slots=True)
class _Trial:
    workspace: Workspace
    frame: DataFrame

    def results(self, asked: Sequence[CheckRequest]) -> Iterable[CheckResult]:
        found: dict[int, CheckResult] = {}
        tallies: dict[int, _Tally] = {}
        for index, each in enumerate(asked):
            try:
                prepared = self._prepared(each)
            except Exception as error:  # an unknown column, for one, is told on the page
                prepared = check_not_run(each, _told(error))
            if isinstance(prepared, _Tally):
                tallies[index] = prepared
            else:
                found[index] = prepared
        found |= _together(tallies)
        return [found[index] for index in range(len(asked))]

    def _prepared(self, asked: CheckRequest) -> _Tally | CheckResult:
        check = asked.check
        if isinstance(check, RowCheck | KeyCheck):
            tally = (
                self._row_tally(asked, check)
                if isinstance(check, RowCheck)
                else self._key_tally(asked, check)
            )
            _ = tally.frame.agg(*tally.columns).schema  # analyses: what is wrong is this check's fault alone
            return tally
        if not isinstance(check, QueryCheck):
            return check_not_run(asked, f"checks of kind {check.kind} can't be run_checks")
        count = check.count(asked.column, self._filtered(check.filter), self.workspace)
        if count.holds is not None:
            status = CheckStatus.SUCCESS if count.holds else CheckStatus.FAILED
            return replace(check_not_run(asked), status=status, message=count.message)
        failing = count.failing
        rows = None if failing is None else lambda: failing
        return _counted(asked, count.passed or 0, count.failed or 0, rows)

    def _row_tally(self, asked: CheckRequest, check: RowCheck) -> _Tally:
        from pyspark.sql import functions

        frame, among = self._subject(check)
        rows = check.rows(asked.column, frame)
        among = among if rows is None else among & rows
        holds = functions.coalesce(check.condition(asked.column, frame), functions.lit(False))
        counts = (functions.count_if(among & holds), functions.count_if(among & ~holds))
        return _Tally(asked, frame, counts, lambda: _leading(frame.where(among & ~holds), asked.column))

    def _key_tally(self, asked: CheckRequest, check: KeyCheck) -> _Tally:
        from pyspark.sql import functions

        frame, among = self._subject(check)
        names = check.key(asked.column)
        is_there = functions.lit(False)
        for name in names:
            is_there |= column_of(name).isNotNull()
        among &= is_there
        key = functions.struct(*(column_of(name).alias(f"k{n}") for n, name in enumerate(names)))
        counts = (functions.count_distinct(functions.when(among, key)), functions.count_if(among))

        def repeated() -> DataFrame:
            grouped = frame.where(among).groupBy(*map(column_of, names))
            return (
                grouped.agg(functions.count("*").alias("rows"))
                .where("rows > 1")
                .orderBy(functions.desc("rows"))
            )

        return _Tally(asked, frame, counts, repeated)

    def _subject(self, check: Check) -> tuple[DataFrame, Column]:
        """Return the frame to count in, and which of its rows count: a filter with a query has its own."""
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


def _together(tallies: dict[int, _Tally]) -> dict[int, CheckResult]:
    """Return how checks ended that are counted in one pass for each frame."""
    found: dict[int, CheckResult] = {}
    frames = {id(tally.frame): tally.frame for tally in tallies.values()}
    for key, frame in frames.items():
        group = {index: tally for index, tally in tallies.items() if id(tally.frame) == key}
        try:
            found |= _counted_in(frame, group)
        except Exception:  # one of them breaks off on some row: which one is found out one by one
            for index, tally in group.items():
                try:
                    found |= _counted_in(frame, {index: tally})
                except Exception as error:  # told on the page
                    found[index] = check_not_run(tally.asked, _told(error))
    return found


def _counted_in(frame: DataFrame, tallies: dict[int, _Tally]) -> dict[int, CheckResult]:
    (row,) = frame.agg(*(column for tally in tallies.values() for column in tally.columns)).collect()
    numbers = list(row)
    return {
        index: tally.result(*numbers[2 * place : 2 * place + 2])
        for place, (index, tally) in enumerate(tallies.items())
    }


def _counted(asked: CheckRequest, passed: int, failed: int, rows: Rows | None) -> CheckResult:
    is_shown = failed > 0 and rows is not None
    return replace(
        check_not_run(asked),
        status=CheckStatus.FAILED if failed else CheckStatus.SUCCESS,
        passed=passed,
        failed=failed,
        sample=_sample(rows()) if is_shown and rows is not None else Sample(),
    )


def _leading(frame: DataFrame, column: str | None) -> DataFrame:
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
    return Sample(tuple(names), tuple(tuple(map(_cut, row)) for row in rows.collect()))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"


def _told(error: Exception) -> str:
    if isinstance(error, LakewrightError):
        return error.message
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"
