"""The `expression` assertion: checks that every row meets some conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator
from pydantic import Field as Declared

from lakewright.spec.models.base import Texts
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.assertions.assertion import MappingAssertion, Verdict, check_not_empty, shown_rows

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["ExpressionAssertion"]


class ExpressionAssertion(MappingAssertion):
    """Holds if every row meets every condition; a condition that is null is not met."""

    expected: Annotated[Texts, AfterValidator(check_not_empty), SqlText.CONDITION] = Declared(
        description="SQL conditions, as in WHERE."
    )

    def check(self, workspace: Workspace) -> Verdict:
        """Return for each condition the number of rows that do not meet it, counted in one pass."""
        from pyspark.sql import functions

        frame = workspace.frame(self.mapping)
        missed = [
            ~functions.coalesce(functions.expr(text).cast("boolean"), functions.lit(False))
            for text in self.expected
        ]
        counts = frame.agg(*map(functions.count_if, missed)).collect()[0]
        return Verdict(
            tuple(
                f"{count} {'row fails' if count == 1 else 'rows fail'} {text}: {rows}"
                for text, miss, count in zip(self.expected, missed, counts, strict=True)
                if count and (rows := shown_rows(frame.where(miss)))
            )
        )
