"""Targets that keep nothing: `blackhole`, `console` and `count`, which read rows in BUILD, and `empty`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import Input
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import KindOf, RefersTo, Texts
from lakewright.spec.reason import Reason
from lakewright.spec.words import counted
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.datasets import Dataset
from lakewright.targets.target import Target
from lakewright.targets.writing import observed_measures

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class _Reader(Target):
    """Reads rows in BUILD, and keeps none."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.BUILD})
    feeds_others: ClassVar[bool] = False
    always_builds: ClassVar[bool] = True


class _MappingReader(_Reader):
    """Reads all rows of a mapping."""

    mapping: Input

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)


class BlackholeTarget(_MappingReader):
    """Computes every row of a mapping in BUILD and keeps none."""

    mapping: Input = Declared(description="Mapping whose rows to compute.")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compute the rows."""
        context.workspace.frame(self.mapping).write.format("noop").mode("overwrite").save()
        return Outcome(metrics=observed_measures(context.workspace, self.mapping))


class CountTarget(_MappingReader):
    """Counts the rows in BUILD, and prints the number."""

    mapping: Input = Declared(description="Mapping whose rows to count.")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Count the rows and print the number."""
        rows = context.workspace.frame(self.mapping).count()
        context.say(f"{self.mapping}: {counted(rows, 'row')}")
        return Outcome(metrics={"records": rows})


_WIDEST = 60


class ConsoleTarget(_Reader):
    """Prints rows as a table in BUILD."""

    input: Annotated[Dataset, KindOf("dataset", default="mapping"), RefersTo.INSIDE] = Declared(
        description="Dataset to print."
    )
    limit: int = Declared(default=100, ge=0, description="Largest number of rows to print.")
    columns: Texts = Declared(default=(), description="Columns to print; by default all.")

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the dataset reads."""
        return self.input.requires(workspace)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Print the rows."""
        frame = self.input.read(context.workspace)
        names = list(self.columns) or frame.columns
        rows = frame.select(*(column(name).cast("string") for name in names)).limit(self.limit).collect()
        for line in _table([names, *(["null" if v is None else v for v in row] for row in rows)]):
            context.say(line)
        return Outcome(metrics={"records": len(rows)})


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield lines with aligned columns; long values are cut."""
    cells = [[_cut(value) for value in row] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    for row in cells:
        yield "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()


def _cut(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


class EmptyTarget(Target):
    """Does nothing and is never dirty; `before` and `after` of other targets can refer to it."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset(Phase) - {Phase.VALIDATE}
    feeds_others: ClassVar[bool] = False

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target never runs."""
        return Dirtiness.no(Reason(Code.NEVER_RUNS))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do nothing."""
        return Outcome()
