"""Errors of Spark: their classes, and their messages without what only a parser of SQL needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakewright.errors import Location, SpecError
from lakewright.lake.query_failures import missing_reader

__all__ = [
    "analysis_error",
    "first_line",
    "is_entry_alone",
    "located_rejection",
    "reason_with_position",
    "spark_errors",
]


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that reading a version may raise."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JJavaError)


def analysis_error() -> type[Exception]:
    """Return the class of errors in a query or an expression: its syntax, and names that do not exist."""
    from pyspark.errors import AnalysisException

    return AnalysisException


_GONE = ("[DELTA_PATH_DOES_NOT_EXIST]", "[DELTA_TABLE_NOT_FOUND]", "[PATH_NOT_FOUND]")


def is_entry_alone(error: BaseException) -> bool:
    """Return whether Spark says that only the catalog's entry is left of a Delta table."""
    return any(condition in first_line(error) for condition in _GONE)


def first_line(error: BaseException) -> str:
    """Return Spark's message without its SQLSTATE and position."""
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$", "", first)


def reason_with_position(error: BaseException) -> str:
    """Return Spark's message, and where in the text of the query the fault is.

    Example:
        >>> reason_with_position(ValueError("no column `idd`. SQLSTATE: 42703; line 2 pos 7;"))
        'no column `idd` (line 2, column 8 of the text)'
    """
    first = str(error).strip().partition("\n")[0]
    found = re.search(r"line (\d+),? pos (\d+)", first)
    if found is None:
        return first_line(error)
    return f"{first_line(error).rstrip('.')} (line {found[1]}, column {int(found[2]) + 1} of the text)"


@contextmanager
def located_rejection(subject: str, locate: Callable[[], Location | None], remedy: str) -> Iterator[None]:
    """Raise what Spark's analysis finds in a query or an expression as an error of the declaration.

    Errors of the declaration that have no place get that of the definition.

    Args:
        subject: What is declared there, as messages name it.
        locate: Returns the place of the declaration.
        remedy: What to correct.

    Raises:
        SpecError: Spark rejects the query or the expression.
        NotInstalled: Spark lacks the package of a format.
    """
    try:
        yield
    except SpecError as error:
        raise error.placed(subject, locate()) from error.__cause__
    except analysis_error() as error:
        if (missing := missing_reader(str(error))) is not None:
            raise missing from error
        raise SpecError.of(
            f"{subject}: Spark rejects it: {reason_with_position(error)}", location=locate(), remedy=remedy
        ) from error
