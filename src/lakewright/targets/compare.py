"""The `compare` target: two datasets that must hold the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.errors import VerificationError
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.difference import SchemaRules, schema_differences
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import KindOf, Reference
from lakewright.targets.context import Context
from lakewright.targets.datasets.dataset import Dataset
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CompareTarget"]

_SHOWN = 10


class CompareTarget(Target):
    """Compares in VERIFY; rows may come in any order, and as often in the one as in the other."""

    actual: Annotated[Dataset, KindOf("dataset")] = Declared(description="Dataset to check.")
    expected: Annotated[Dataset, KindOf("dataset")] = Declared(description="What it must hold.")
    compare_schema: bool = Declared(default=False, description="Compare columns first, by the rules below.")
    ignore_types: bool = Declared(default=False, description="Compare names only.")
    ignore_nullability: bool = Declared(default=False, description="Leave out whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Let names match in any case.")
    ignore_order: bool = Declared(default=False, description="Let columns come in any order.")

    def references(self) -> Iterable[Reference]:
        """Return what the datasets name."""
        return [
            Reference(each.category, each.name, (side, *each.path))
            for side, dataset in (("actual", self.actual), ("expected", self.expected))
            for each in dataset.references()
        ]

    def phases(self) -> frozenset[Phase]:
        """Return VERIFY."""
        return frozenset({Phase.VERIFY})

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what the datasets are made of."""
        del phase
        return self.actual.requires(workspace) | self.expected.requires(workspace)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compare the datasets.

        Raises:
            VerificationError: They differ; some of the rows are shown.
        """
        del phase
        actual, expected = (side.read(context.workspace) for side in (self.actual, self.expected))
        differences = self._schema_differences(actual, expected) or _row_differences(actual, expected)
        if differences:
            raise VerificationError(
                f"{self.label}: {'; '.join(differences)}", details={"differences": list(differences)}
            )
        return Outcome()

    def _schema_differences(self, actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
        """Return differences of the columns; of names alone where only rows are to be compared."""
        rules = SchemaRules(
            types=self.compare_schema and not self.ignore_types,
            nullability=self.compare_schema and not (self.ignore_nullability or self.ignore_types),
            case=self.compare_schema and not self.ignore_case,
            order=self.compare_schema and not self.ignore_order,
        )
        return schema_differences(fields_of(actual.schema), fields_of(expected.schema), rules)


def _row_differences(actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
    actual = conform(actual, fields_of(expected.schema))
    surplus, missing = actual.exceptAll(expected), expected.exceptAll(actual)
    return tuple(
        f"{word}: {shown}"
        for word, rows in (("not expected", surplus), ("missing", missing))
        if (shown := _sample(rows))
    )


def _sample(rows: DataFrame) -> str:
    found = rows.limit(_SHOWN + 1).collect()
    shown = ", ".join(str(tuple(row)) for row in found[:_SHOWN])
    return f"{shown}, …" if len(found) > _SHOWN else shown
