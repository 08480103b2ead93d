"""Checks whether an entity's strategy may write to an existing silver table.

Source: `processing-strategies.md`, "Behavior" of the strategies (first run); refusals are Lakewright's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError, MigrationError, SchemaDriftError
from lakewright.errors.phrase import Option, Phrase
from lakewright.schema.canonical import HASH_VERSION, KNOWN_VERSIONS
from lakewright.spec.models.column import normal_name
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.table_properties import (
    HASH_VERSION_PROPERTY,
    KEY_PROPERTY,
    NAMES_PROPERTY,
    STRATEGY_PROPERTY,
    kept_key,
    key_text,
)

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice


def check_table_compatible(
    state: TableState,
    strategy: Strategy,
    entity: Entity,
    *,
    allow_data_loss: bool,
    prepared: PreparedSlice | None = None,
) -> None:
    """Raise an error unless the entity may continue with the table.

    Args:
        state: The table.
        strategy: The strategy to apply.
        entity: The entity.
        allow_data_loss: Whether Full may replace rows of another strategy.
        prepared: The slice to write; without one, what is known from the declaration is checked.

    Raises:
        DataLossError: Full would replace rows of Merge or Historic.
        MigrationError: The table's rows are of another strategy, or have hashes of another version, or the
            table has other partitions.
        SchemaDriftError: The table has another business key, or a column has another name in the table.
    """
    if not state.exists:
        return
    _check_strategy(state, strategy, entity, allow_data_loss=allow_data_loss)
    check_partitions(state.partition_columns, strategy, entity)
    if strategy is Strategy.FULL:
        return
    _check_hash_version(state.properties, entity)
    if prepared is not None:
        _check_system_columns(state, strategy, prepared, entity)
        _check_key(state.properties, prepared, entity)
        _check_names(state, prepared.names, entity)
        return
    kept = kept_key(state.properties)
    declared = sorted({name.lower() for name in entity.business_keys})
    if kept and sorted(kept) != declared:
        raise _key_error(", ".join(sorted(kept)), ", ".join(declared), entity)
    _check_names(state, {column.source: column.silver for column in entity.columns}, entity)


def check_partitions(
    partitions: Sequence[str], strategy: Strategy, entity: Entity, *, remedy: str | None = None
) -> None:
    """Raise `MigrationError` unless a table has the partition columns that the entity declares.

    An entity that declares none may have a partitioned table, except with Full, which would replace only the
    partitions of the slice.

    Args:
        partitions: The table's partition columns, by their names in silver.
        strategy: The strategy to apply.
        entity: The entity.
        remedy: What to do if they differ; by default to declare the table's, or to build it again.
    """
    declared = entity.partition_columns
    if not declared and strategy is not Strategy.FULL:
        return
    if {name.lower() for name in partitions} != {name.lower() for name in declared}:
        raise MigrationError(
            f"the table is partitioned by {', '.join(partitions) or 'no column'}, the entity by "
            f"{', '.join(declared) or 'none'}",
            remedy=remedy
            or Phrase("Declare the columns by which the table is partitioned; or ", _again(entity), "."),
            details={"table": list(partitions), "entity": list(declared)},
        )


def _again(entity: Entity, *options: str) -> str:
    return Phrase("build the table again from its slices with ", rebuild_command(entity).plus(*options))


def _reload(entity: Entity, *options: str) -> str:
    full, loss = Option("--strategy full"), Option("--allow-data-loss")
    return Phrase(_again(entity, *options), "; or reload it with ", full, " ", loss)


def _check_names(state: TableState, names: Mapping[str, str], entity: Entity) -> None:
    """Raise `SchemaDriftError` for a renamed column: it would stay empty in rows that do not change.

    Args:
        state: The table.
        names: Column of the source to its name in silver.
        entity: The entity.
    """
    kept: Mapping[str, str] = json.loads(state.properties.get(NAMES_PROPERTY) or "{}")
    given = {new.lower() for new in names.values()}
    for source, new in names.items():
        old = kept.get(source.lower(), normal_name(source))
        is_gone = state.column(old) is not None and old.lower() not in given
        if is_gone and (source.lower() in kept or not state.column(new)):
            raise SchemaDriftError(
                f"column {source!r} is called {old!r} in the table and {new!r} now: it would be empty in all "
                "rows that do not change",
                remedy=Phrase(f"Call it {old!r} again, with `newname`; or ", _reload(entity), "."),
                details={"column": source, "table": old, "entity": new},
            )


def _check_strategy(state: TableState, strategy: Strategy, entity: Entity, *, allow_data_loss: bool) -> None:
    kept = state.properties.get(STRATEGY_PROPERTY)
    if strategy is Strategy.FULL:
        if kept in {Strategy.MERGE, Strategy.HISTORIC} and not (allow_data_loss or state.is_empty):
            raise DataLossError(f"the table holds rows of the strategy {kept}, which full would replace")
    elif kept not in {strategy, Strategy.FULL} or (kept == Strategy.FULL and strategy is Strategy.HISTORIC):
        found = f"rows of the strategy {kept}" if kept else "rows that Lakewright did not write"
        again = _reload(entity, *([] if kept else ["--over-foreign"]))
        raise MigrationError(
            f"the table holds {found}; {strategy} cannot continue from them",
            remedy=Phrase("Give the entity another destination, or ", again, "."),
            details={"table": kept, "strategy": strategy.value},
        )


def _check_hash_version(properties: Mapping[str, str], entity: Entity) -> None:
    if properties.get(HASH_VERSION_PROPERTY) not in KNOWN_VERSIONS:
        raise MigrationError(
            f"the table's hashes are of version {properties.get(HASH_VERSION_PROPERTY)}, this "
            f"tool's of {HASH_VERSION}: every row would count as changed",
            remedy=Phrase("Use the version of Lakewright that wrote them, or ", _reload(entity), "."),
        )


def _check_system_columns(
    state: TableState, strategy: Strategy, prepared: PreparedSlice, entity: Entity
) -> None:
    system = prepared.system
    times = system.temporal if strategy is Strategy.HISTORIC else ()
    needed = (system.key, system.hash, system.deleted, system.last_seen, *times)
    missing = [name for name in needed if not state.column(name)]
    if missing:
        raise MigrationError(
            f"the table lacks the columns {', '.join(missing)}, which the strategy {strategy} needs",
            remedy=Phrase("Give the entity another destination, or ", _reload(entity), "."),
            details={"missing": missing},
        )


def _check_key(properties: Mapping[str, str], prepared: PreparedSlice, entity: Entity) -> None:
    kept, found = properties.get(KEY_PROPERTY), key_text(prepared)
    if kept is not None and kept != found:
        is_same = json.loads(kept).keys() == json.loads(found).keys()
        types = [column.type for column in entity.columns if column.is_business_key]
        raise _key_error(kept, found, entity, is_undeclared=is_same and None in types)


def _key_error(kept: str, found: str, entity: Entity, *, is_undeclared: bool = False) -> SchemaDriftError:
    """Return the error of a slice with another key than the table's.

    Args:
        kept: The key of the table, as text for users.
        found: The key of the slice.
        entity: The entity.
        is_undeclared: Whether only types differ that are not declared: a rebuild alone would find them again.
    """
    restore = (
        "Declare the `datatype` of the key" if is_undeclared else "Restore the business key and its types"
    )
    return SchemaDriftError(
        f"the table's rows are keyed by {kept}, the slice's by {found}: no row would be found again",
        remedy=Phrase(f"{restore}, {('then' if is_undeclared else 'or')} ", _reload(entity), "."),
        details={"table": kept, "slice": found},
    )
