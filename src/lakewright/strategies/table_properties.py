"""Table properties of silver tables, by which later slices know how the rows were made."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from lakewright.spec.models.column import normal_name
from lakewright.spec.models.entity import Strategy
from lakewright.transform.hash import HASH_VERSION
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice

__all__ = [
    "EXPRESSIONS_PROPERTY",
    "HASH_VERSION_PROPERTY",
    "HISTORY_PROPERTY",
    "KEY_PROPERTY",
    "NAMES_PROPERTY",
    "STRATEGY_PROPERTY",
    "declared_properties",
    "expression_digests",
    "key_text",
    "own_properties",
    "silver_properties",
]

STRATEGY_PROPERTY = "lakewright.strategy"
HASH_VERSION_PROPERTY = "lakewright.hashVersion"
KEY_PROPERTY = "lakewright.key"
NAMES_PROPERTY = "lakewright.names"
"""JSON of renamed columns: name in the source, in lower case, to the name in the table."""

EXPRESSIONS_PROPERTY = "lakewright.expressions"
"""JSON of computed columns: name to the digest of the expression that computed them when rows came first."""

HISTORY_PROPERTY = "lakewright.historyFrom"
"""The declaration by which past versions were loaded before the first slice."""

TRANSFORMATIONS = "transformations"
"""Name under which the digest of lists of expressions stands."""

INDEXED = 32
"""Number of columns, from the first on, for which Delta collects statistics by default."""


def silver_properties(entity: Entity, prepared: PreparedSlice) -> dict[str, str]:
    """Return the properties of a new silver table; those that the entity declares win."""
    properties = {
        "delta.enableDeletionVectors": "true",
        **own_properties(prepared),
        **declared_properties(entity),
    }
    columns = [field.name for field in prepared.frame.schema.fields]
    if len(columns) > INDEXED:
        # The first columns alone would lack those by which files are skipped: keys, watermarks and times.
        times = (
            (prepared.system.valid_from, prepared.system.valid_to)
            if prepared.shape is Strategy.HISTORIC
            else ()
        )
        useful = [*prepared.key_columns, *prepared.watermarks.values(), *times]
        chosen = dict.fromkeys([*useful, *columns[: INDEXED - len(useful)]])
        names = [name for name in chosen if name not in prepared.partitions]
        properties["delta.dataSkippingStatsColumns"] = ",".join(name_sql(name) for name in names)
    return {**properties, **entity.settings.silver_properties}


def own_properties(prepared: PreparedSlice) -> dict[str, str]:
    """Return the properties that say how the rows of a table were made."""
    properties = {
        STRATEGY_PROPERTY: prepared.shape.value,
        HASH_VERSION_PROPERTY: HASH_VERSION,
        KEY_PROPERTY: key_text(prepared),
    }
    renamed = {old.lower(): new for old, new in prepared.names.items() if new != normal_name(old)}
    return properties | ({NAMES_PROPERTY: json.dumps(renamed, sort_keys=True)} if renamed else {})


def declared_properties(entity: Entity) -> dict[str, str]:
    """Return the properties that say by which declaration the first rows of a table were made.

    Later slices leave them as they are: rows that no slice changes keep what the former declaration gave.
    """
    if entity.strategy is Strategy.FULL:
        return {}  # each slice replaces all rows
    return {EXPRESSIONS_PROPERTY: json.dumps(expression_digests(entity), sort_keys=True)}


def expression_digests(entity: Entity) -> dict[str, str]:
    """Return what an entity computes, by the name in silver: a digest of the expression of each column.

    Lists of expressions have no column of their own; they have one digest together. Spaces do not count.
    """
    texts: dict[str, list[str]] = {}
    for column, expression in expressions_of(entity):
        name = TRANSFORMATIONS if column == expression else entity.silver_name(column)
        texts.setdefault(name, []).append(" ".join(expression.split()))
    return {name: sha256("\n".join(found).encode()).hexdigest()[:16] for name, found in texts.items()}


def key_text(prepared: PreparedSlice) -> str:
    """Return the business key as its property holds it: JSON of column to type, names in lower case."""
    return json.dumps({name.lower(): kind for name, kind in prepared.keys.items()}, sort_keys=True)
