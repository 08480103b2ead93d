"""A check that declared expressions only compute with a row's columns, and access nothing else.

Some of Spark's functions call any Java method or reveal names of files, and a subquery can read any file.

Source: Lakewright's own; Spark SQL's functions `reflect` and `java_method`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.spark.engine import jvm_of
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.plans import kind_of, nodes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity


_REFUSED_FUNCTIONS = frozenset(
    (
        "reflect",
        "java_method",
        "try_reflect",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_user",
        "user",
        "session_user",
        "current_catalog",
        "current_database",
        "current_schema",
        "version",
        "read_files",
        "from_avro_file",
        "raise_error",
    )
)

_REFUSED_NODES = ("Subquery", "Exists", "ListQuery", "TableValued", "PlanExpression")


def check_expressions(session: SparkSession, entity: Entity) -> None:
    """Raise `SpecError` unless all expressions of an entity only compute with columns.

    Raises:
        SpecError: An expression does more, or can't be parsed; the message names it and its column.
    """
    for column, expression in expressions_of(entity):
        problem = find_unsafe_part(session, expression)
        if problem is not None:
            raise SpecError.of(
                f"column {column!r} of entity {entity.name!r}: the expression {expression!r} {problem}",
                remedy="Use only the row's columns, and functions of Spark that compute values.",
            )


def find_unsafe_part(session: SparkSession, expression: str) -> str | None:
    """Return what is wrong with an expression, or None; it is parsed, not run."""
    jvm = jvm_of(session)
    if jvm is None:
        return _unsafe_part_without_jvm(expression)
    from pyspark.errors import PySparkException

    parser = jvm.session.sessionState().sqlParser()
    try:
        tree = parser.parseExpression(expression)
    except PySparkException as error:
        return f"can't be parsed: {str(error).strip().partition(chr(10))[0]}"
    for node in nodes_of(tree):
        name = kind_of(node)
        if any(part in name for part in _REFUSED_NODES):
            return "contains a subquery"
        if name == "UnresolvedFunction":
            parts = node.nameParts()
            function = str(parts.last()).lower()
            if parts.size() > 1 or function in _REFUSED_FUNCTIONS:
                return f"calls {function}, which is not allowed"
    return None


def _unsafe_part_without_jvm(expression: str) -> str | None:
    """Return the same by another parser of Spark's SQL; what that can't parse is refused, too."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(f"SELECT {expression}", dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        return f"can't be parsed: {str(error).strip().partition(chr(10))[0]}"
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return "is no single expression"
    if len(list(tree.find_all(exp.Query))) > 1:
        return "contains a subquery"
    for node in tree.find_all(exp.Func, exp.Dot):
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            return f"calls {node.sql('spark')}, which is not allowed"
        name = node.name if isinstance(node, exp.Anonymous) else getattr(node, "sql_name", str)()
        if name.lower() in _REFUSED_FUNCTIONS:
            return f"calls {name.lower()}, which is not allowed"
    return None
