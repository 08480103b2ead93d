"""Relations of a workspace, and the rows that are read from them, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pytest

from lakewright.errors import LakewrightError
from lakewright.lake.spark_errors import query_failure, spark_errors
from lakewright.relations.relation import Relation, StoredRelation
from lakewright.schema.fault import Fault
from lakewright.transform.fault_words import fault_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


Row: TypeAlias = tuple[str | None, ...]


def stored(workspace: Workspace, name: str) -> StoredRelation:
    """Return the relation of a name, which holds rows."""
    found = Relation.named(workspace, name)
    assert isinstance(found, StoredRelation)
    return found


def failed(frame: DataFrame) -> LakewrightError:
    """Return the error of a query that fails."""
    with pytest.raises(spark_errors()) as raised:
        frame.collect()
    found = query_failure(raised.value, "in a test")
    assert found is not None
    return found


def misfit(workspace: Workspace, name: str, column: str = "*") -> Fault:
    """Return what fails the reading of a relation, or of one of its columns."""
    found = fault_of(failed(workspace.relation(name).read(workspace).select(column)))
    assert found is not None
    return found


def rows(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """Return the rows in order, of these columns or of all, with each value as a text."""
    texts = frame.select(*(frame[f"`{name}`"].cast("string") for name in columns or frame.columns))
    return sorted(tuple(row) for row in texts.collect())


def rows_by_name(frames: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """Return the rows of many small frames, sorted by their texts; one query reads them all."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    parts = [
        frame.select(
            f.lit(name).alias("name"),
            f.array(*(frame[f"`{n}`"].cast("string") for n in frame.columns)).alias("row"),
        )
        for name, frame in frames.items()
    ]
    found: dict[str, list[Row]] = {name: [] for name in frames}
    for name, row in reduce(DataFrame.unionAll, parts).collect():
        found[name].append(tuple(row))
    return {name: sorted(each, key=by_text) for name, each in found.items()}


def counts_by_name(frames: Mapping[str, DataFrame]) -> dict[str, int]:
    """Return how many rows each of many small frames has; one query counts them all."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    parts = [
        frame.agg(f.count(f.lit(1)).alias("count")).select(f.lit(name).alias("name"), "count")
        for name, frame in frames.items()
    ]
    return dict(map(tuple, reduce(DataFrame.unionAll, parts).collect()))


def by_text(row: Row) -> list[str]:
    """Return what rows with nulls are sorted by."""
    return [value or "" for value in row]
