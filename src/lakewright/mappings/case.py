"""The `case` mapping: the first of several mappings whose condition holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.mappings.mapping import Input, Mapping
from lakewright.spec.models.base import Listed, Model, Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["Case", "CaseMapping"]

_TRUE = frozenset(("true", "yes", "1"))
_FALSE = frozenset(("false", "no", "0", ""))


class Case(Model):
    """A mapping and the condition under which it is chosen."""

    condition: str = Declared(description="An expression that gives true or false.")
    input: Input = Declared(description="The mapping to return if the condition holds.")


class CaseMapping(Mapping):
    """Returns the first mapping whose condition holds; conditions are expressions, not SQL."""

    cases: Listed[Case] = Declared(min_length=1, description="The mappings with their conditions, in order.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings of all cases."""
        return [
            Reference("mapping", case.input, ("cases", index, "input"))
            for index, case in enumerate(self.cases)
        ]

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mapping that is chosen."""
        return (self._chosen(),)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query of the mapping that is chosen."""
        return workspace.sql_text(self._chosen())

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of the mapping that is chosen.

        Raises:
            SpecError: No condition holds, or one is neither true nor false.
        """
        return workspace.frame(self._chosen())

    def _chosen(self) -> str:
        for case in self.cases:
            value = case.condition.strip().lower()
            if value in _TRUE:
                return case.input
            if value not in _FALSE:
                raise SpecError.of(
                    f"mapping {self.name!r}: the condition {case.condition!r} is neither true nor false",
                    remedy="Use an expression that gives true or false, such as ${day.isBefore(first)}.",
                )
        raise SpecError.of(
            f"mapping {self.name!r}: none of its {len(self.cases)} conditions holds",
            remedy="Add a last case with the condition true.",
        )
