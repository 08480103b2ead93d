"""Settings of a load's session that follow from the sizes of its slice and its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.spark.conf import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake


SMALL_SLICE = 4 << 20
"""Bytes up to which a slice is processed in one partition: several tasks would start later than one ends."""

SMALL_TABLE = 200_000
"""Rows up to which a table is processed in one partition, for the same reason."""

TINY_SLICE, TINY_TABLE = 256 << 10, 20_000
"""Bytes of a slice and rows of a table up to which Spark interprets expressions.

Otherwise it writes Java for each query and compiles that, which pays off over many rows only. A warm Merge of
20 rows took the JVM 4.7 s of processor time with it and 3.6 s without, by turns on a busy machine. Both
bounds were chosen, not measured.
"""

WIDE = 200
"""Number of columns above which CollapseProject costs more time than it saves."""

PARTITION = 16 << 20
"""Bytes of files for each partition of a shuffle, so that a task sorts or hashes its rows in memory.

Rows of Parquet take about ten times as much memory, with a key and a hash of 64 digits each.
"""

PARTITIONS = "spark.sql.shuffle.partitions"
SPARKS_PARTITIONS = 200
"""Partitions of a shuffle in a session that has no setting for them."""

INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
"""Settings with which Spark interprets expressions and compiles no Java for them."""

_SMALL = {"spark.sql.adaptive.enabled": "false", PARTITIONS: "1"}

_WIDE = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject"}
"""Spark's rule compares all pairs of columns; without it 2,000 columns are planned in half the time."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the queries of a load are run; it changes nothing of what they give.

    Attributes:
        is_tiny: Whether slice and table are so small that compiling a query costs more than running it.
        is_small: Whether they are so small that the number of queries costs more than their rows.
        is_wide: Whether there are many columns.
        partitions: Partitions that a shuffle needs, so that one fits in a task's memory.
    """

    is_tiny: bool
    is_small: bool
    is_wide: bool
    partitions: int = 1

    @classmethod
    def of(cls, state: TableState, *, size: int = 0, columns: int | None = None) -> Tuning:
        """Return what suits a slice and its table.

        Args:
            state: The table.
            size: Bytes of the slice; 0 for statements over the table alone.
            columns: Number of the slice's columns; by default the table's.

        Example:
            >>> from lakewright.lake.delta_log import TableState
            >>> Tuning.of(TableState(exists=True, rows=30_000_000, size=800 << 20), size=1 << 20)
            Tuning(is_tiny=False, is_small=False, is_wide=False, partitions=50)
        """
        rows = state.rows
        return cls(
            is_tiny=rows is not None and size <= TINY_SLICE and rows <= TINY_TABLE,
            is_small=rows is not None and size <= SMALL_SLICE and rows <= SMALL_TABLE,
            is_wide=(len(state.columns) if columns is None else columns) > WIDE,
            partitions=-(-max(size, state.size or 0, 1) // PARTITION),
        )

    def apply(self, session: SparkSession, lake: Lake) -> None:
        """Give a session of the lake these settings; others become what the lake's own session has."""
        base = lake.spark.conf
        chosen = {
            **(INTERPRETED if self.is_tiny else {}),
            **self._partitions(lake),
            **(_SMALL if self.is_small else {}),
            **(_WIDE if self.is_wide else {}),
        }
        for key in (*INTERPRETED, *_SMALL, *_WIDE):
            # To unset a key would give it Spark's default, whatever the session was started with.
            wanted = chosen.get(key, base.get(key, None))
            if wanted is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, wanted)

    def _partitions(self, lake: Lake) -> dict[str, str]:
        """Return the setting for more partitions than the lake's session has, unless users chose a number."""
        if PARTITIONS in lake.session.conf:
            return {}
        started = int(lake.spark.conf.get(PARTITIONS, None) or SPARKS_PARTITIONS)
        return {PARTITIONS: str(self.partitions)} if self.partitions > started else {}


def broadcast_limit(session: SparkSession) -> int:
    """Return the bytes up to which Spark broadcasts one side of a join; 0 if it does not."""
    return bytes_of(session.conf.get("spark.sql.autoBroadcastJoinThreshold", None) or "", unit="b") or 0
