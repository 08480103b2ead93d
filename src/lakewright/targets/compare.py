"""The `compare` target: checks that two datasets hold the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.checks.columns import differences_told
from lakewright.errors import VerificationError
from lakewright.lake.columns import conform, fields_of
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.schema.diff import DiffRules
from lakewright.schema.shape import comparable_sql
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import KindOf, Reference
from lakewright.spec.models.fields import Field
from lakewright.targets.context import Context
from lakewright.targets.datasets import Dataset
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CompareTarget"]

_SHOWN = 10


class CompareTarget(Target):
    """Compares two datasets in VERIFY: each row must occur equally often in both, in any order."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})
    feeds_others: ClassVar[bool] = False

    actual: Annotated[Dataset, KindOf("dataset")] = Declared(description="Dataset to check.")
    expected: Annotated[Dataset, KindOf("dataset")] = Declared(description="Dataset with the expected rows.")
    compare_schema: bool = Declared(default=False, description="Compare columns too, by the rules below.")
    ignore_types: bool = Declared(default=False, description="Compare column names only.")
    ignore_nullability: bool = Declared(default=False, description="Ignore whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Ignore the case of column names.")
    ignore_order: bool = Declared(default=False, description="Ignore the order of columns.")

    def references(self) -> Iterable[Reference]:
        """Return what the datasets refer to."""
        return [*self.actual.references_below("actual"), *self.expected.references_below("expected")]

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the datasets read."""
        return self.actual.requires(workspace) | self.expected.requires(workspace)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compare the datasets.

        Raises:
            VerificationError: The datasets differ; the message shows some of the rows.
        """
        actual, expected = (side.read(context.workspace) for side in (self.actual, self.expected))
        differences = self._schema_differences(actual, expected) or _row_differences(actual, expected)
        if differences:
            raise VerificationError(
                f"{self.label}: {'; '.join(differences)}", details={"differences": list(differences)}
            )
        return Outcome()

    def _schema_differences(self, actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
        """Return the differences of columns; only their names count unless `compareSchema` is set."""
        rules = DiffRules(
            types=self.compare_schema and not self.ignore_types,
            nullability=self.compare_schema and not (self.ignore_nullability or self.ignore_types),
            case=self.compare_schema and not self.ignore_case,
            order=self.compare_schema and not self.ignore_order,
        )
        return differences_told(fields_of(actual.schema), fields_of(expected.schema), rules)


def _row_differences(actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
    # A value that does not fit must not become a null that equals an expected one.
    fields = fields_of(expected.schema)
    actual = _comparable(conform(actual, fields, is_strict=True), fields)
    expected = _comparable(expected, fields)
    surplus, missing = actual.exceptAll(expected), expected.exceptAll(actual)
    return tuple(
        f"{word}: {shown}"
        for word, rows in (("unexpected", surplus), ("missing", missing))
        if (shown := _sample(rows))
    )


def _comparable(rows: DataFrame, fields: Sequence[Field]) -> DataFrame:
    return rows.selectExpr(
        *(f"{comparable_sql(name_sql(each.name), each.type)} as {name_sql(each.name)}" for each in fields)
    )


def _sample(rows: DataFrame) -> str:
    found = rows.limit(_SHOWN + 1).collect()
    shown = ", ".join(str(tuple(row)) for row in found[:_SHOWN])
    return f"{shown}, …" if len(found) > _SHOWN else shown
