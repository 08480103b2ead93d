"""Decimals whose fractions a UNION, INTERSECT or EXCEPT of a query cuts, as Spark's analysis shows.

Spark gives a column of such an operation one type for all its inputs. If no decimal holds the digits of all,
it casts to one with fewer digits after the decimal point. In the analysed plan, that is a cast below the
operation which the query does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.spark.engine import jvm_of
from lakewright.transform.plans import analyzed_plans, elements, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OPERATIONS = {"Union": "a UNION", "Intersect": "an INTERSECT", "Except": "an EXCEPT"}
_WORDS = re.compile(r"\b(union|intersect|except|minus)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cut:
    """A column whose fractions an operation cuts.

    Attributes:
        operation: The operation with its article.
        column: The column; the path of a decimal inside a struct, an array or a map.
        before: The decimal's type in an input.
        after: Its type in the result.
    """

    operation: str
    column: str
    before: str
    after: str


def cut_columns(query: str, frame: DataFrame) -> tuple[Cut, ...]:
    """Return the columns whose fractions a query cuts, each once.

    What the query reads by name, as a view, is not looked at. Spark Connect shows no plan: none are returned.
    """
    jvm = jvm_of(frame)
    if jvm is None or _WORDS.search(query) is None:
        return ()
    tag = jvm.packages.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    return tuple(dict.fromkeys(found for each in analyzed_plans(jvm, frame) for found in _cut(each, tag)))


def _cut(plan: Any, tag: Any) -> Iterator[Cut]:
    kind = kind_of(plan)
    if kind == "View":
        return
    for child in elements(plan.children()):
        if kind in _OPERATIONS and kind_of(child) == "Project":
            for column in elements(child.projectList()):
                for path, before, after in _cast_of(column, tag):
                    yield Cut(_OPERATIONS[kind], path, before, after)
        yield from _cut(child, tag)


def _cast_of(column: Any, tag: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the path and the types of each decimal that a cast of a column cuts, if Spark added the cast."""
    cast = column.child() if kind_of(column) == "Alias" else None
    if cast is None or kind_of(cast) != "Cast" or cast.getTagValue(tag).isDefined():
        return
    yield from _cut_decimals(column.name(), cast.child().dataType(), cast.dataType())


def _cut_decimals(path: str, before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    kind = kind_of(before)
    if kind_of(after) != kind:
        return
    if kind == "DecimalType" and after.scale() < before.scale():
        yield path, before.simpleString(), after.simpleString()
    elif kind == "StructType":
        for old, new in zip(before.fields(), after.fields(), strict=True):
            yield from _cut_decimals(f"{path}.{new.name()}", old.dataType(), new.dataType())
    elif kind == "ArrayType":
        yield from _cut_decimals(f"{path}.element", before.elementType(), after.elementType())
    elif kind == "MapType":
        yield from _cut_decimals(f"{path}.key", before.keyType(), after.keyType())
        yield from _cut_decimals(f"{path}.value", before.valueType(), after.valueType())
