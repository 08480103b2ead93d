"""Table properties of silver tables, by which later slices know how the rows were made."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from lakewright.lake.paths import local_path
from lakewright.schema.canonical import HASH_VERSION, KNOWN_VERSIONS, CanonicalForm
from lakewright.schema.sql import name_sql
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.expressions.secrets import is_secret_name
from lakewright.spec.models.column import normal_name
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.entity_settings import DELETION_VECTORS
from lakewright.transform.pipeline import expressions_of

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.lake import LakeSettings
    from lakewright.transform.pipeline import PreparedSlice


STRATEGY_PROPERTY = "lakewright.strategy"
HASH_VERSION_PROPERTY = "lakewright.hashVersion"
KEY_PROPERTY = "lakewright.key"
"""JSON of the business key: column of the source, in lower case, to the class of its type."""

KEY_VALUES_PROPERTY = "lakewright.keyValues"
"""`cast` if primary keys are of values in their declared types; without it, they are of the source's."""

NAMES_PROPERTY = "lakewright.names"
"""JSON of renamed columns: name in the source, in lower case, to the name in the table."""

EXPRESSIONS_PROPERTY = "lakewright.expressions"
"""JSON of computed columns: name to the digest of the expression that computed them when rows came first.

The entries that `-D` overrode then stand under `GIVEN`.
"""

HISTORY_PROPERTY = "lakewright.historyFrom"
"""The declaration by which past versions were loaded before the first slice; see `history_text`."""

NAIVE_TIMES_PROPERTY = "lakewright.naiveTimes"
"""The time zone in which the rows' times without an offset were read; `refuse` if none was read."""

REFUSED_TIMES = "refuse"

_FOLLOWED = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables whose readers follow each commit, and in it each row that changes."""

_CAST = "cast"

TRANSFORMATIONS = "transformations"
"""Name under which the digest of lists of expressions stands."""

GIVEN = "-D"
"""Name under which the digests of entries stand that `-D` overrode when the table was built."""

INDEXED = 32
"""Number of columns, from the first on, for which Delta collects statistics by default."""


def silver_properties(entity: Entity, prepared: PreparedSlice) -> dict[str, str]:
    """Return the properties of a new silver table; those that the entity declares win."""
    properties = {
        DELETION_VECTORS: "true",
        **own_properties(prepared),
        **declared_properties(entity, prepared.form.zone),
    }
    columns = [field.name for field in prepared.frame.schema.fields]
    if len(columns) > INDEXED:
        # The first columns alone would lack those by which files are skipped: keys, watermarks and times.
        times = prepared.system.temporal[:2] if prepared.shape is Strategy.HISTORIC else ()
        useful = [*prepared.key_columns, *prepared.watermarks.values(), *times]
        chosen = dict.fromkeys([*useful, *columns[: INDEXED - len(useful)]])
        names = [name for name in chosen if name not in prepared.partitions]
        properties["delta.dataSkippingStatsColumns"] = ",".join(name_sql(name) for name in names)
    return {**properties, **entity.settings.silver_properties}


def own_properties(prepared: PreparedSlice) -> dict[str, str]:
    """Return the properties that say how the rows of a table were made."""
    properties = {
        STRATEGY_PROPERTY: prepared.shape.value,
        HASH_VERSION_PROPERTY: prepared.form.version,
        KEY_PROPERTY: key_text(prepared),
    }
    if prepared.is_key_cast:
        properties[KEY_VALUES_PROPERTY] = _CAST
    renamed = {old.lower(): new for old, new in prepared.names.items() if new != normal_name(old)}
    return properties | ({NAMES_PROPERTY: json.dumps(renamed, sort_keys=True)} if renamed else {})


def canonical_form(properties: Mapping[str, str], zone: str) -> CanonicalForm:
    """Return the canonical form of a table's hashes: a table keeps its own until it is built again.

    Args:
        properties: The table's properties; none if there is no table yet.
        zone: The lake's time zone.
    """
    kept = properties.get(HASH_VERSION_PROPERTY, HASH_VERSION)
    return CanonicalForm(kept if kept in KNOWN_VERSIONS else HASH_VERSION, zone)


def is_key_cast(properties: Mapping[str, str]) -> bool:
    """Return whether the primary keys of a table are of values in their declared types.

    So they are where no row has a primary key yet. Tables that earlier versions of Lakewright made have
    primary keys of the source's values, and keep them until they are built again.
    """
    return properties.get(KEY_VALUES_PROPERTY) == _CAST or not kept_key(properties)


def kept_key(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the business key of a table's rows: column of the source, in lower case, to its type's class."""
    return dict(json.loads(properties.get(KEY_PROPERTY) or "{}"))


def declared_properties(entity: Entity, zone: str) -> dict[str, str]:
    """Return the properties that say by which declaration the first rows of a table were made.

    Later slices leave them as they are: rows that no slice changes keep what the former declaration gave.

    Args:
        entity: The entity.
        zone: The lake's time zone.
    """
    if entity.strategy is Strategy.FULL:
        return {}  # each slice replaces all rows
    given = definition_digests(entity)
    digests = {**expression_digests(entity, given), **({GIVEN: given} if given else {})}
    return {
        EXPRESSIONS_PROPERTY: json.dumps(digests, sort_keys=True),
        NAIVE_TIMES_PROPERTY: entity.settings.naive_zone(zone) or REFUSED_TIMES,
    }


def expression_digests(entity: Entity, given: Mapping[str, str]) -> dict[str, str]:
    """Return what an entity computes, by the name in silver: a digest of the expression of each column.

    Lists of expressions have no column of their own; they have one digest together. Spaces do not count.
    Expressions count as the file declares them, with the entries that they use of the environments of the
    project and the job: one that holds a parameter or the date is the same in each run.

    Args:
        entity: The entity.
        given: Names that `-D` overrides, with the digests of their values; see `definition_digests`.
    """
    texts: dict[str, list[str]] = {}
    for name, expression in _named_expressions(entity):
        behind = sorted(entity.scope.entries_behind(expression, given).items())
        entries = [f"{key}={given.get(key) or _digest(text)}" for key, text in behind]
        texts.setdefault(name, []).append("\n".join([" ".join(expression.split()), *entries]))
    return {name: _digest("\n".join(found)) for name, found in texts.items()}


def definition_digests(entity: Entity) -> dict[str, str]:
    """Return the names of entries behind an entity's expressions that `-D` overrides, with their digests.

    A name that no environment declares is a parameter, and left out. Of a secret, nothing is kept but that it
    is overridden.
    """
    given = entity.scope.definitions
    used = entries_used(entity, given)
    return {
        name: "secret" if is_secret_name(name) else _digest(text)
        for name, text in sorted(given.items())
        if name in used
    }


def entries_used(
    entity: Entity, given: Collection[str], columns: Collection[str] | None = None
) -> frozenset[str]:
    """Return the names of entries of environments behind an entity's expressions.

    Args:
        entity: The entity.
        given: Names that `-D` overrides.
        columns: The names, as `expression_digests` has them, of the expressions; by default all.
    """
    return frozenset(
        name
        for column, expression in _named_expressions(entity)
        if columns is None or column in columns
        for name in entity.scope.entries_behind(expression, given)
    )


def _named_expressions(entity: Entity) -> Iterator[tuple[str, str]]:
    """Yield each expression as the files declare it, after the name that its digest has."""
    for column, expression in expressions_of(entity.as_declared()):
        yield TRANSFORMATIONS if column == expression else entity.silver_name(column), expression


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def history_text(entity: Entity, lake: LakeSettings) -> str | None:
    """Return the declaration of an entity's past versions, as the property holds it; None without one.

    `declared` is the place in a form that a move of the project or the lake leaves as it is: an expression as
    the file declares it, a path below the lake's root folder relative to that.
    """
    history = entity.settings.history_from
    if history is None:
        return None
    as_written = entity.as_declared().settings.history_from or history
    return json.dumps(
        {**json.loads(history.text), "declared": _placed(as_written.place, lake)}, sort_keys=True
    )


def _placed(place: str, lake: LakeSettings) -> str:
    place, root = place.rstrip("/"), (lake.root_folder or "").rstrip("/")
    if has_expression(place):
        return place
    path, folder = local_path(place), local_path(root)
    if root and path and folder and path.is_absolute() and path.is_relative_to(folder):
        return str(path.relative_to(folder))
    return place.removeprefix(f"{root}/") if root else place


def is_same_history(one: str, other: str) -> bool:
    """Return whether two texts of past versions declare the same, wherever project and lake are now."""
    both = (json.loads(one), json.loads(other))
    is_known = all("declared" in each for each in both)
    for each in both:
        declared = each.pop("declared", None)
        if is_known:
            each["folder" if "folder" in each else "table"] = declared
    return bool(both[0] == both[1])


def followed_by(properties: Mapping[str, str]) -> str | None:
    """Return the property by which readers follow each commit to a table, and the rows that it changes."""
    return next((name for name in _FOLLOWED if properties.get(name, "").lower() == "true"), None)


def key_text(prepared: PreparedSlice) -> str:
    """Return the business key as its property holds it: JSON of column to type, names in lower case."""
    classes = {field.name.lower(): prepared.form.class_of(field.type) for field in prepared.key_fields}
    return json.dumps(classes, sort_keys=True)
