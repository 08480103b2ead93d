"""What rows of a table may not be if it is to be adopted.

Source: `processing-strategies.md`, "Version Lifecycle"; what is refused is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError
from lakewright.transform.sql import name_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["Doubt", "counted", "doubts"]

SAMPLES = 5

_P = "_lakewright_"
KEY, FROM, END, CURRENT, DELETED, SEEN, NEXT, FORMER = (
    f"{_P}{name}" for name in ("key", "from", "end", "current", "deleted", "seen", "next", "former")
)
"""Columns of the rows while they are worked out; an end is null where there is none."""

FLAG, OPEN, UNREAD, SAME, NEXT_FLAG = (
    f"{_P}{name}" for name in ("flag", "open", "unread", "same", "next_flag")
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a row may not be: words for it and the condition."""

    words: str
    condition: str
    remedy: str


def doubts(at: datetime, entity: Entity, *, is_historic: bool) -> Iterator[Doubt]:
    """Yield what would leave open what rows mean.

    Args:
        at: The instant up to which versions may reach.
        entity: The entity.
        is_historic: Whether rows are versions.
    """
    adoption = entity.settings.adopt
    keys = "Correct the table, or the entity's business key."
    times = "Correct the table first: its last good version may be restored."
    yield Doubt("rows have a value that can't be read as a time or a mark", UNREAD, times)
    if not is_historic:
        yield Doubt("rows share their key with another one", f"{SAME} > 1", keys)
        return
    yield Doubt("versions have no beginning", f"{FROM} is null", times)
    yield Doubt(
        "versions are current beside another one of their key", f"{END} is null and {NEXT} is not null", times
    )
    yield Doubt("versions begin when another one of their key does", f"{NEXT} = {FROM}", times)
    yield Doubt("versions end before they begin", f"{END} < {FROM}", times)
    yield Doubt("versions overlap the one before", f"{FORMER} > {FROM}", times)
    yield Doubt(
        "versions are marked as current but have an end, or the other way round",
        f"{CURRENT} <> {OPEN}",
        times,
    )
    future = instant_sql(at)
    yield Doubt(
        "versions begin or end in the future",
        f"{FROM} > {future} or {END} > {future}",
        "If such an end means that there is none, name it as `sentinel` in `adopt`.",
    )
    if adoption is not None and adoption.are_deletes_rows:
        yield Doubt(
            "deleted rows don't begin where a version of their key ends",
            f"coalesce({FLAG}, false) and not {FORMER} <=> {FROM}",
            "Say `deletes: flag` in `adopt` if the flag belongs to the version that was closed.",
        )
    else:
        yield Doubt(
            "versions are current and flagged as deleted",
            f"{END} is null and {FLAG}",
            "Say `deletes: row` in `adopt` if they begin with the delete, or name `last_seen`.",
        )


def counted(rows: DataFrame, doubts: Iterator[Doubt], prepared: PreparedSlice) -> dict[str, int]:
    """Return the numbers of rows, of current and of deleted ones, where none is in doubt.

    Raises:
        MigrationError: Of some it isn't clear what they mean; all doubts come at once, with samples of keys.
    """
    from pyspark.sql import functions

    found = list(doubts)
    is_current = f"{END} is null" if END in rows.columns else "true"
    asked = {
        "rows": "count(1)",
        "current": f"count_if({is_current} and not coalesce({DELETED}, false))",
        "deleted": f"count_if(coalesce({DELETED}, false))",
        **{f"doubt{n}": f"count_if(coalesce({doubt.condition}, false))" for n, doubt in enumerate(found)},
    }
    row = rows.agg(*(functions.expr(sql).alias(name) for name, sql in asked.items())).first()
    counts: dict[str, Any] = {} if row is None else row.asDict()
    doubted = [(doubt, counts[f"doubt{n}"]) for n, doubt in enumerate(found) if counts[f"doubt{n}"]]
    if doubted:
        raise _unclear(rows, doubted, prepared)
    return {name: int(counts[name]) for name in ("rows", "current", "deleted")}


def _unclear(rows: DataFrame, doubted: list[tuple[Doubt, int]], prepared: PreparedSlice) -> MigrationError:
    said = []
    for doubt, count in doubted:
        samples = rows.where(doubt.condition).selectExpr(*map(name_sql, prepared.key_columns)).limit(SAMPLES)
        shown = [
            ", ".join(f"{name}={row[name]}" for name in prepared.key_columns) for row in samples.collect()
        ]
        said.append(f"{count} {doubt.words} ({'; '.join(shown)}{' …' if count > len(shown) else ''})")
    return MigrationError(
        f"the table can't be adopted: {'; '.join(said)}",
        remedy=doubted[0][0].remedy,
        details={doubt.words: count for doubt, count in doubted},
    )
