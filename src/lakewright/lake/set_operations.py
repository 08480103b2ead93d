"""Decimals whose fractions a UNION, INTERSECT or EXCEPT of a query cuts, as Spark's analysis shows.

Spark gives a column of such an operation one type for all its inputs. If no decimal holds the digits of all,
it casts to one with fewer digits after the decimal point. In the analysed plan, that is a cast below the
operation which the query does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["cut_columns"]

_OPERATIONS = frozenset({"Union", "Intersect", "Except"})
_WORDS = re.compile(r"\b(union|intersect|except|minus)\b", re.IGNORECASE)


def cut_columns(query: str, frame: DataFrame) -> tuple[tuple[str, str, str], ...]:
    """Return the columns whose fractions a query cuts, each with the type in an input and that of the result.

    What the query reads by name, as a view, is not looked at. Spark Connect shows no plan: none are returned.
    """
    java: Any = getattr(frame, "_jdf", None)
    if java is None or _WORDS.search(query) is None:
        return ()
    jvm: Any = frame.sparkSession._jvm
    tag = jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    plan = java.queryExecution().analyzed()
    subqueries = plan.subqueriesAll()
    plans = [plan, *(subqueries.apply(number) for number in range(subqueries.size()))]
    return tuple(dict.fromkeys(found for each in plans for found in _cut(each, tag)))


def _cut(plan: Any, tag: Any) -> Iterator[tuple[str, str, str]]:
    kind = plan.getClass().getSimpleName()
    if kind == "View":
        return
    for child in _each(plan.children()):
        if kind in _OPERATIONS and child.getClass().getSimpleName() == "Project":
            for column in _each(child.projectList()):
                yield from _cast_of(column, tag)
        yield from _cut(child, tag)


def _cast_of(column: Any, tag: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the name of a column and the types of its cast, if Spark added that, and it cuts fractions."""
    cast = column.child() if column.getClass().getSimpleName() == "Alias" else None
    if cast is None or cast.getClass().getSimpleName() != "Cast" or cast.getTagValue(tag).isDefined():
        return
    before, after = cast.child().dataType(), cast.dataType()
    kinds = {before.getClass().getSimpleName(), after.getClass().getSimpleName()}
    if kinds == {"DecimalType"} and after.scale() < before.scale():
        yield column.name(), before.simpleString(), after.simpleString()


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
