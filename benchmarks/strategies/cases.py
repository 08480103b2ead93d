"""The cases: strategies, table sizes, and the share of changed rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CONTESTANTS = ("tool", "naive", "hand", "duckdb", "warm")
"""All who take turns; which of them a case has, `Case.contestants` tells."""

STRATEGIES = ("merge", "merge_column", "historic")
"""Merge with `last_seen: on_change`, Merge with defaults, and Historic."""

TYPICAL = 0.01
SHARES = (TYPICAL, 0.0, 1.0, 0.001, 0.1)
"""Cases with targets come first, because a run may end before all cases are measured."""


@dataclass(frozen=True, slots=True)
class Case:
    """One slice applied to a table of this many rows, a share of which changes.

    Attributes:
        is_whole: Whether the slice contains all rows of the source; otherwise only the changed ones.
    """

    strategy: str
    rows: int
    share: float
    is_whole: bool = True
    columns: int = 20

    @property
    def name(self) -> str:
        """The key of its measurements."""
        kind = "whole" if self.is_whole else "changes"
        return f"{self.strategy}_{self.rows}x{self.columns}_{kind}_{self.share:g}".replace(".", "p")

    @property
    def base(self) -> str:
        """The name of the table that the slice is applied to."""
        return f"{self.strategy}_{self.rows}x{self.columns}"

    @property
    def contestants(self) -> tuple[str, ...]:
        """Who takes a turn: the JVM of a server only where there is a target for it."""
        is_wanted = self.is_whole and self.share == TYPICAL and self.columns == 20
        return CONTESTANTS if is_wanted and self.strategy != "merge_column" else CONTESTANTS[:-1]

    @property
    def what(self) -> str:
        """Its description."""
        share = f"{self.share:.1%}".replace(".0%", "%")
        kind = f"all rows, {share} changed" if self.is_whole else f"only the {share} that changed"
        size = f"{self.rows:,} rows" + ("" if self.columns == 20 else f" of {self.columns} columns")
        return f"{size}: {kind}"


def every_case(sizes: tuple[int, ...]) -> Iterator[Case]:
    """Return all cases for tables with these numbers of rows."""
    for rows in sizes:
        for share in SHARES:
            yield from (Case(strategy, rows, share) for strategy in STRATEGIES)
        yield from (Case(strategy, rows, 0.01, is_whole=False) for strategy in ("merge", "historic"))
    yield from (Case("historic", min(sizes) // 10, 0.01, columns=columns) for columns in (20, 100, 400))
