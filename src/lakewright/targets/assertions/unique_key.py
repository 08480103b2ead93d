"""The `uniqueKey` assertion: checks that no two rows have the same key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.spec.models.base import Texts
from lakewright.targets.assertions.assertion import MappingAssertion, Verdict

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["UniqueKeyAssertion"]

_SHOWN = 5


class UniqueKeyAssertion(MappingAssertion):
    """Holds if each combination of values in the key columns occurs once; null counts as a value."""

    key: Texts = Declared(min_length=1, description="Columns that identify a row.")

    def check(self, workspace: Workspace) -> Verdict:
        """Return some of the keys that occur more than once."""
        counted = workspace.frame(self.mapping).groupBy(*map(column, self.key)).count()
        repeated = counted.where(column(counted.columns[-1]) > 1).limit(_SHOWN).collect()
        return Verdict(
            tuple(f"{_shown(self.key, tuple(row)[:-1])} occurs {tuple(row)[-1]} times" for row in repeated)
        )


def _shown(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
