"""A table beside an entity's own, in which a rewind applies slices before readers see any of it.

It starts as a shallow clone of an earlier version, which copies no rows, or without any rows. In the end one
commit replaces the rows and columns of the entity's table by its own.

Source: Delta's documentation, "Shallow clone" and "Replace table schema".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Token, carrying_token, read_commits, strict_session
from lakewright.lake.delta_sql import table_detail
from lakewright.lake.observation import may_be_clustered, observe_table
from lakewright.lake.table import drop_table, ensure_database, remove_uncommitted
from lakewright.schema.sql import name_sql, text_sql
from lakewright.slices.chain import slices_in
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.places import Address
from lakewright.strategies.tuning import Tuning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.commit import Commit
    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.slice_replay import KnownSlice


SUFFIX = "__rebuild"
"""End of the name of the table beside an entity's own."""

REHEARSAL = "__rehearsal"
"""End of the name of the table in which a slice is rehearsed: no rewind continues or removes it."""

_INTERNAL = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized", "delta.feature.")
"""Beginnings of properties that Delta sets by itself."""

_OWN = "lakewright."
"""Beginning of the properties that say how the rows of a table were made."""


_OTHER = "it was built of other slices, under another declaration, or from another version"


def side_address(address: Address, suffix: str = SUFFIX) -> Address:
    """Return the place of the table beside the one at an address."""
    if address.location is not None:
        return Address(location=f"{address.location.rstrip('/')}{suffix}")
    return Address(name=f"{address.name}{suffix}")


def begin_beside(
    context: ProcessingContext,
    entity: Entity,
    side: Entity,
    base: int | None,
    *,
    app: str,
    slices: Sequence[KnownSlice],
    session: SparkSession | None = None,
    is_expected: bool = False,
) -> bool:
    """Make the side table hold a version of the entity's table; return whether an attempt is continued.

    What another rewind has left there is removed, and what was begun before the table's last rewind: that was
    swapped in by a process that died, or starts with a version that is no longer under the table's.

    Args:
        context: The context of the processing.
        entity: The entity.
        side: The entity with the place of the side table.
        base: The version to start with; None for a table without rows, which the first slice makes.
        app: The application id of this rewind's commits to the side table.
        slices: The slices that are to be applied; an attempt that applied others, or at other times, is not
            continued. A rehearsal gives none.
        session: The session in which the clone is made; by default one of its own.
        is_expected: Whether the user knows what is there: a comparison built it.
    """
    lake = context.lake
    address, source = side.places(lake.settings).silver, entity.places(lake.settings).silver
    if observe_table(lake, address).exists:
        why = _refusal(lake, address, source, base, app=app, slices=slices)
        if slices and why is not None:
            context.warn(f"{entity.called}: what was left beside the table is removed: {address}: {why}")
        elif slices and not is_expected:
            context.warn(
                f"{entity.called}: what an earlier attempt built beside the table is continued: {address}"
            )
        if why is None:
            return True
        drop_table(lake, address)
    remove_uncommitted(address)
    if base is None:
        return False
    ensure_database(lake, address)
    session = session or rewind_session(lake, observe_table(lake, source))
    with carrying_token(session, Token(app, 0, {"origin": _origin(lake, source, base)})):
        session.sql(f"CREATE TABLE {address.sql} SHALLOW CLONE {source.sql} VERSION AS OF {base}").collect()
    return False


def rewind_session(lake: Lake, state: TableState) -> SparkSession:
    """Return a strict session for the statements of a rewind, tuned to the size of the table."""
    session = strict_session(lake)
    Tuning.of(state).apply(session, lake)
    return session


def _refusal(
    lake: Lake,
    address: Address,
    source: Address,
    base: int | None,
    *,
    app: str,
    slices: Sequence[KnownSlice],
) -> str | None:
    """Return why a replay does not continue what is beside a table; None if it does."""
    log = read_commits(lake, address)
    if is_outlived(log, _commits(lake, source)):
        return "a rewind has changed the table since"
    return None if _is_continued(log, app, slices, _origin(lake, source, base)) else _OTHER


@dataclass(frozen=True, slots=True)
class LeftBeside:
    """What a rewind has left beside a table, and what is to be done about it, as sentences of a plan."""

    words: str
    advice: str


def left_beside(lake: Lake, entity: Entity) -> LeftBeside | None:
    """Return what a rewind has left beside an entity's table; None for nothing."""
    silver = entity.places(lake.settings).silver
    side = side_address(silver)
    if not observe_table(lake, side).exists:
        return None
    if is_outlived(read_commits(lake, side), _commits(lake, silver)):
        words = f"{side} is of no use: an undo or a rebuild has changed the table since"
        return LeftBeside(words, "the next undo or rebuild removes it")
    words = f"{side} is left of a rebuild or an undo that was not swapped in"
    again = Phrase(Command("rebuild", entity.called), " or the undo, typed again, continues it")
    return LeftBeside(words, again)


def is_outlived(side: Sequence[Commit], table: Sequence[Commit]) -> bool:
    """Return whether a rewind has changed a table since what is beside it was begun, by their logs.

    It was swapped in then, or starts with a version that the table does not build on any more.
    """
    begun = next((commit.at for commit in side if commit.at is not None), None)
    rewinds = [commit.at for commit in table if commit.content.get("rewind") and commit.at is not None]
    return begun is not None and any(at >= begun for at in rewinds)


def _commits(lake: Lake, address: Address) -> Sequence[Commit]:
    return read_commits(lake, address) if observe_table(lake, address).exists else ()


def _origin(lake: Lake, source: Address, base: int | None) -> str | None:
    """Return what identifies the version that a side table starts with: a table made anew has others."""
    if base is None:
        return None
    found = next((commit for commit in _commits(lake, source) if commit.version == base), None)
    return f"{base}" if found is None else f"{base} {found.operation} {found.at}"


def _is_continued(log: Sequence[Commit], app: str, slices: Sequence[KnownSlice], origin: str | None) -> bool:
    """Return whether a side table holds the first of these slices, as they are applied now, and no other."""
    own = [commit for commit in log if commit.content.get("app") == app]
    if not own or (origin is not None and own[0].content.get("origin") != origin):
        return False
    expected = {
        number: (known.item_id, dict(known.fingerprint), known.at.isoformat(), known.strategy.value)
        for number, known in enumerate(slices, 1)
    }
    return all(expected.get(each["number"]) == _applied(each) for each in _rewound(own, app))


def _rewound(log: Sequence[Commit], app: str) -> Iterator[Mapping[str, Any]]:
    """Yield what commits say of their slices, and of those before them that changed nothing."""
    for commit in log:
        for applied in slices_in(commit, app):
            yield applied.content
            yield from applied.content.get("unwritten", ())


def _applied(content: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(content.get(name) for name in ("item", "fingerprint", "processingTime", "strategy"))


def remove_beside(context: ProcessingContext, entity: Entity) -> None:
    """Remove the side table of an entity, if there is one; warn if that fails.

    The next rewind removes it then: it begins with what was before the table's last rewind.
    """
    address = entity.beside(context.lake.settings, SUFFIX).places(context.lake.settings).silver
    try:
        drop_table(context.lake, address)
    except Exception as error:  # the rewind has landed; its records must not wait for a folder
        context.warn(f"{entity.called}: {address}, which is of no use any more, can't be removed: {error}")


def swap_write(
    lake: Lake, session: Any, target: Address, side: Address, state: TableState
) -> Callable[[], None]:
    """Return the write that replaces the rows, columns and layout of a table by those of another.

    Properties of the table stay, unless the other one, whose state is given, has a value for them.
    """
    kept = {k: v for k, v in observe_table(lake, target).properties.items() if not k.startswith(_OWN)}
    all_properties = {**kept, **state.properties}
    pairs = [
        f"{text_sql(key)} = {text_sql(value)}"
        for key, value in all_properties.items()
        if not key.startswith(_INTERNAL)
    ]
    parts = (
        f"CREATE OR REPLACE TABLE {target.sql} USING delta",
        _layout_sql(lake, session, target, side, state),
        f"TBLPROPERTIES ({', '.join(pairs)})" if pairs else "",
        f"AS SELECT * FROM {side.sql}",  # noqa: S608 - the names are quoted
    )
    # By SQL, because a writer takes no `CLUSTER BY`, and as a session's first statement it makes a commit
    # without the session's token: Delta's catalog keeps the session that is active when it is made.
    return partial(session.sql, " ".join(filter(None, parts)))


def _layout_sql(lake: Lake, session: Any, target: Address, side: Address, state: TableState) -> str:
    """Return the clause for the partitions of a side table, or else for the columns that cluster it."""
    if state.partition_columns:
        return f"PARTITIONED BY ({', '.join(map(name_sql, state.partition_columns))})"
    # A side table that was built from nothing has no clustering; that of the old table is kept then.
    columns = _clustering(lake, session, side)
    if not columns and observe_table(lake, target).exists:
        columns = _clustering(lake, session, target)
    is_there = columns and all(state.column(name) for name in columns)
    return f"CLUSTER BY ({', '.join(map(name_sql, columns))})" if is_there else ""


def _clustering(lake: Lake, session: Any, address: Address) -> list[str]:
    """Return the columns by which a table is clustered, which Delta reports if the log names the feature."""
    if not may_be_clustered(lake, address):
        return []
    return list(table_detail(session, address).get("clusteringColumns") or ())
