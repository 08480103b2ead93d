"""Columns of an adopted table: which are kept, renamed, replaced, dropped or added.

Adoption rewrites all rows once, because each gets a primary key and a hash. The table's earlier versions stay
readable.

Source: `processing-strategies.md`, "Behavior" of Merge and Historic (an existing table is continued);
    adoption is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import MigrationError, SchemaDriftError
from lakewright.spec.models.adoption import LIKE
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.compatibility import check_partitions
from lakewright.strategies.table_properties import STRATEGY_PROPERTY
from lakewright.strategies.version_rows import check_present
from lakewright.transform.storable_columns import final_names
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.spec.models.adoption import Adoption
    from lakewright.spec.models.entity import Entity


_PARTITIONED = (
    "Map the declared columns to the table's in `adopt: columns`; or declare those by which the table is "
    "partitioned, or rewrite the table with the declared ones first."
)


@dataclass(frozen=True, slots=True)
class AdoptedColumns:
    """The effect of an adoption on a table's columns.

    Attributes:
        adoption: The declaration.
        roles: Role of a column (`valid_from`, …) to its name in the table.
        kept: Name in the table to the name in silver.
        replaced: System columns of the table whose values are computed again.
        dropped: Columns that are dropped.
        added: System columns that are added.
    """

    adoption: Adoption
    roles: Mapping[str, str]
    kept: Mapping[str, str]
    replaced: tuple[str, ...]
    dropped: tuple[str, ...]
    added: tuple[str, ...]

    def changes(self, system: SystemColumns, rows: int | None) -> Iterator[str]:
        """Yield a text for each change that adoption makes, for a plan."""
        renamed = {name: getattr(system, role) for role, name in self.roles.items()}
        renamed |= {old: new for old, new in self.kept.items() if old != new}
        count = "" if rows is None else f" of at most {rows:,} rows"
        yield f"adopt the table{count}: each row gets its key and hash, all in one commit"
        yield from (f"rename column {old} to {new}" for old, new in renamed.items() if old != new)
        yield from (f"add column {name}" for name in self.added)
        yield from (f"replace column {name}" for name in self.replaced)
        yield from (f"drop column {name}" for name in self.dropped)


def is_adoptable(entity: Entity, state: TableState) -> bool:
    """Return whether the entity declares an adoption, and the table was made by another tool."""
    is_ours = STRATEGY_PROPERTY in state.properties
    return entity.settings.adopt is not None and state.exists and not is_ours


def adopted_columns(entity: Entity, state: TableState, system: SystemColumns) -> AdoptedColumns:
    """Return what adoption does to a table's columns.

    Raises:
        MigrationError: A column that the entity names does not exist, or a partition column would be dropped,
            or the entity declares other partition columns.
    """
    adoption = entity.settings.adopt
    if adoption is None:
        raise RuntimeError("the entity declares no adoption")
    is_historic = entity.strategy is Strategy.HISTORIC
    declared = adoption.roles(state.names, prefix=system.prefix, with_times=is_historic)
    own = adoption.columns
    wanted = [*declared.values(), *own.values(), *adoption.drop]
    if is_historic and "valid_from" not in declared:
        wanted.append(LIKE.get(adoption.like or "", {}).get("valid_from", "").format(prefix=system.prefix))
    check_present("the table to adopt", wanted, state.names, "Correct the names in the entity's `adopt`.")
    exact = {name.lower(): name for name in state.names}
    roles = {role: exact[name.lower()] for role, name in declared.items()}
    given = {exact[name.lower()]: silver for silver, name in own.items()}
    dropped = tuple(name for name in state.names if name.lower() in {n.lower() for n in adoption.dropped})
    others = [name for name in state.names if name not in {*roles.values(), *dropped}]
    made = {name.lower() for name in _made(system, is_historic=is_historic)}
    replaced = tuple(name for name in others if name.lower() in made)
    kept = _final_names([name for name in others if name not in replaced], given, system)
    _check_partitions_kept(state, kept)
    partitions = [kept[name] for name in state.partition_columns]
    check_partitions(partitions, entity.strategy, entity, remedy=_PARTITIONED)
    there = {name.lower() for name in (*replaced, *(getattr(system, role) for role in roles))}
    added = tuple(name for name in _made(system, is_historic=is_historic) if name.lower() not in there)
    return AdoptedColumns(adoption, roles, kept, replaced, dropped, added)


def _made(system: SystemColumns, *, is_historic: bool) -> tuple[str, ...]:
    """Return the system columns that adoption computes, in order; an existing file name is kept."""
    times = system.temporal if is_historic else ()
    return (system.hash, *times, system.key, system.deleted, system.last_seen)


def _final_names(names: Sequence[str], given: Mapping[str, str], system: SystemColumns) -> dict[str, str]:
    taken = [name for name in system.all if name != system.filename.lower()]
    try:
        return final_names(names, given, taken)
    except SchemaDriftError as error:
        remedy = "List it in `adopt`: by its role, in `columns` with another name, or in `drop`."
        raise MigrationError(error.message, remedy=remedy, details=error.details) from None


def _check_partitions_kept(state: TableState, kept: Mapping[str, str]) -> None:
    lost = [name for name in state.partition_columns if name not in kept]
    if lost:
        raise MigrationError(
            f"the table is partitioned by {', '.join(lost)}, which adoption would drop",
            remedy="Rewrite the table without these partitions first, or keep the columns.",
            details={"columns": lost},
        )
