"""What delete inference would do about a slice: counted, and nothing written.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.spec.models.entity import Strategy
from lakewright.strategies.delete_inference import is_too_many, window
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from lakewright.strategies.work import Work

__all__ = ["Preview", "preview_deletes"]

_LABEL = "_lakewright_label"


@dataclass(frozen=True, slots=True)
class Preview:
    """Deletes that would be inferred.

    Attributes:
        inferred: Rows of the table that the slice should have brought and doesn't.
        rows: Rows of the table that it should have brought.
        is_refused: Whether the brake would fail the slice for it.
    """

    inferred: int
    rows: int
    is_refused: bool

    def text(self, slice_name: str, strategy: Strategy) -> str:
        """Return the preview in a sentence."""
        if not self.inferred:
            return f"{slice_name} lacks none of the {self.rows} rows in its window"
        verb = "close" if strategy is Strategy.HISTORIC else "soft-delete"
        end = ": max_delete_ratio would refuse that" if self.is_refused else ""
        return (
            f"{slice_name} lacks {self.inferred} of {self.rows} rows in its window, "
            f"and would {verb} them{end}"
        )


def preview_deletes(work: Work, strategy: Strategy) -> Preview | None:
    """Return how many rows a slice would infer as deleted, by one query; None where nothing is inferred."""
    if strategy is Strategy.FULL or not work.state.exists or work.state.is_empty:
        return None
    missing = window(work)
    if missing is None:
        return None
    from pyspark.sql import functions

    system = work.system
    open_ = (
        f"{name_sql(system.valid_to)} is null"
        if strategy is Strategy.HISTORIC
        else f"not coalesce({name_sql(system.deleted)}, false)"
    )
    key = name_sql(system.key)
    expected = work.target().where(f"{missing} and {open_}").selectExpr(key)
    keys = work.prepared.frame.selectExpr(f"{key} as {_LABEL}")
    joined = expected.join(keys, functions.expr(f"{key} = {_LABEL}"), "left")
    row = joined.selectExpr("count(1) as rows", f"count_if({_LABEL} is null) as inferred").first()
    inferred, rows = (0, 0) if row is None else (int(row["inferred"]), int(row["rows"]))
    return Preview(inferred, rows, is_too_many(work.entity, inferred, rows))
