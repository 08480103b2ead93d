"""The `join` mapping: rows of several mappings side by side."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.mappings.mapping import Input, Mapping
from lakewright.spec.models.base import Listed, Reference, Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["JoinMapping"]


def _lower(declared: object) -> object:
    return declared.lower() if isinstance(declared, str) else declared


JoinMode = Annotated[
    Literal[
        "inner", "cross", "outer", "full", "full_outer", "left", "left_outer", "left_anti", "left_semi",
        "right", "right_outer",
    ],
    BeforeValidator(_lower),
]  # fmt: skip


class JoinMapping(Mapping):
    """Joins its inputs, the first with the second, the result with the third, and so on.

    With `columns` these stand once in the result. With `condition`, which names two inputs, all columns of
    both do; `input.column` tells those of the same name apart in the mappings that follow.
    """

    join_inputs: Listed[Input] = Declared(alias="inputs", description="Names of the mappings to join.")
    mode: JoinMode = Declared(default="left", description="How rows without a match are treated.")
    columns: Texts = Declared(default=(), description="Columns of all inputs whose values must be equal.")
    condition: str | None = Declared(default=None, description="SQL condition on two inputs, by their names.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.condition is not None and (self.columns or len(self.join_inputs) != 2):
            raise ValueError("a join by `condition` has two inputs and no `columns`")
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
        return reduce(lambda left, right: left.join(right, on, self.mode), frames)
