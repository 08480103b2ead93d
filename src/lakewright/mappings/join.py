"""The `join` mapping: joins several mappings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import Input, Mapping
from lakewright.spec.models.base import Listed, Reference, Texts, from_text
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["JoinMapping"]


JoinMode = Annotated[
    Literal[
        "inner", "cross", "outer", "full", "full_outer", "left", "left_outer", "left_anti", "left_semi",
        "right", "right_outer",
    ],
    from_text(str.lower),
]  # fmt: skip


class JoinMapping(Mapping):
    """Joins its inputs from left to right.

    With `columns`, the result has these columns once. With `condition`, which may name two inputs, the result
    has all columns of both; later mappings write `input.column` to distinguish columns of the same name.
    """

    join_inputs: Listed[Input] = Declared(alias="inputs", description="Names of the mappings to join.")
    mode: JoinMode = Declared(default="left", description="Join type: how rows without a match are treated.")
    columns: Texts = Declared(default=(), description="Columns of all inputs whose values must be equal.")
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition on two inputs, by name."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.condition is not None and (self.columns or len(self.join_inputs) != 2):
            raise ValueError("a join by `condition` needs exactly two inputs and no `columns`")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the mappings."""
        return [Reference("mapping", name, ("inputs", index)) for index, name in enumerate(self.join_inputs)]

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the joined rows."""
        from pyspark.sql import functions

        frames = [workspace.frame(name).alias(name) for name in self.join_inputs]
        if self.condition is not None:
            return frames[0].join(frames[1], functions.expr(self.condition), self.mode)
        on = list(self.columns) or None
        if on is None and self.mode != "cross" and len(frames) > 1:
            lacks = "has neither columns nor a condition, so that each row joins every row of the other input"
            text = f"mapping {self.name!r}: {lacks}; if that is meant, declare `mode: cross`"
            self.note(workspace, lambda: text)
        return reduce(lambda left, right: left.join(right, on, self.mode), frames)
