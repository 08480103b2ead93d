"""Statements of Delta Lake in SQL, which every session takes; its Python API needs a plugin of the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from lakewright.schema.sql import name_sql
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


_MISSING = "DELTA_MISSING_DELTA_TABLE"
_WHEN = {"insert": "NOT MATCHED", "update": "MATCHED", "delete": "MATCHED"}


def table_detail(spark: SparkSession, address: Address) -> dict[str, Any]:
    """Return Delta's details of a table, such as `location`, `numFiles` and `partitionColumns`."""
    return next(row.asDict() for row in spark.sql(f"DESCRIBE DETAIL {address.sql}").collect())


def described(spark: SparkSession, name: str) -> dict[str, str]:
    """Return what the catalog says of a table or view of a quoted name, such as `Provider` and `Location`.

    Columns are in it too; where one has the name of a property, the property counts.
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return {str(row["col_name"]): str(row["data_type"]) for row in rows if row["data_type"]}


def is_delta(spark: SparkSession, address: Address) -> bool:
    """Return whether there is a Delta table at the address."""
    from pyspark.errors import AnalysisException

    try:
        table_detail(spark, address)
    except AnalysisException as error:
        if error.getCondition() == _MISSING:
            return False
        raise
    return True


def table_history(spark: SparkSession, address: Address, limit: int | None = None) -> DataFrame:
    """Return the newest commits of a table, or all, the newest first."""
    return spark.sql(f"DESCRIBE HISTORY {address.sql}" + (f" LIMIT {limit}" if limit is not None else ""))


def compact_table(spark: SparkSession, address: Address) -> Row | None:
    """Compact the small files of a table in one commit; return Delta's metrics, if it did something."""
    row = spark.sql(f"OPTIMIZE {address.sql}").first()
    return None if row is None else row["metrics"]


def vacuum_table(spark: SparkSession, address: Address, hours: float | None = None) -> None:
    """Remove files that no version of the last hours needs; None takes the table's own retention period."""
    spark.sql(f"VACUUM {address.sql}" + ("" if hours is None else f" RETAIN {hours} HOURS"))


@dataclass(frozen=True, slots=True)
class Clause:
    """The action of a MERGE for rows that satisfy a condition.

    Attributes:
        condition: SQL of the condition; None for every row.
        columns: SQL of each column's value, by its quoted name; unused by a delete.
    """

    action: Literal["insert", "update", "delete"]
    condition: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The clause.

        Example:
            >>> Clause("update", "s.op = 'u'", {"`id`": "s.id"}).sql
            "WHEN MATCHED AND (s.op = 'u') THEN UPDATE SET `id` = s.id"
        """
        condition = "" if self.condition is None else f" AND ({self.condition})"
        return f"WHEN {_WHEN[self.action]}{condition} THEN {self._effect}"

    @property
    def _effect(self) -> str:
        if self.action == "delete":
            return "DELETE"
        if self.action == "insert":
            names, values = ", ".join(self.columns), ", ".join(self.columns.values())
            return f"INSERT ({names}) VALUES ({values})"  # noqa: S608 - its parts are SQL
        return f"UPDATE SET {', '.join(f'{name} = {value}' for name, value in self.columns.items())}"


def merge_rows(
    spark: SparkSession,
    address: Address,
    rows: DataFrame,
    clauses: Sequence[Clause],
    *,
    condition: str,
    names: tuple[str, str] = ("t", "s"),
    evolves: bool = False,
) -> dict[str, int]:
    """Merge rows into a table in one commit, and return Delta's counts, as `num_updated_rows`.

    Args:
        spark: The session of the rows.
        address: The table.
        rows: The source.
        clauses: What happens to rows, in order.
        condition: SQL of whether a row of the table and one of the source belong together.
        names: The names of table and source in conditions and values.
        evolves: Whether columns that the table lacks are added to it.
    """
    target, source = names
    verb = "MERGE WITH SCHEMA EVOLUTION INTO" if evolves else "MERGE INTO"
    actions = " ".join(each.sql for each in clauses)
    with _as_view(rows) as view:
        statement = f"{verb} {address.sql} AS {target} USING {view} AS {source} ON {condition} {actions}"
        row = spark.sql(statement).first()
    return {} if row is None else {name: int(count) for name, count in row.asDict().items()}


@contextmanager
def _as_view(rows: DataFrame) -> Iterator[str]:
    name = f"lakewright_{uuid4().hex}"
    rows.createTempView(name)
    try:
        yield name_sql(name)
    finally:
        rows.sparkSession.catalog.dropTempView(name)
