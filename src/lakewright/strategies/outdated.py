"""What rows of a table lack of today's declaration, although slices may still be processed.

Rows that no slice changes stay as the former declaration made them: only a rebuild mends it. A column may
also have another type in the table than the declared one: values of slices are converted to the declared type
first, and then to the table's. A wider type of the same kind is none of them: Delta widens the table's.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns); the notes are Lakewright's
own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command, Phrase, Placeholder
from lakewright.schema.canonical import HASH_VERSION, KNOWN_VERSIONS
from lakewright.schema.conversion import convert
from lakewright.schema.fits import widened
from lakewright.schema.shape import has_part, plain_type
from lakewright.schema.types import Scalar, Type
from lakewright.spec.expressions.secrets import is_secret_name
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.table_properties import (
    EXPRESSIONS_PROPERTY,
    GIVEN,
    HASH_VERSION_PROPERTY,
    HISTORY_PROPERTY,
    NAIVE_TIMES_PROPERTY,
    REFUSED_TIMES,
    TRANSFORMATIONS,
    canonical_form,
    definition_digests,
    entries_used,
    expression_digests,
    history_text,
    is_key_cast,
    is_same_history,
    kept_key,
)
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.lake import LakeSettings


@dataclass(frozen=True, slots=True)
class Outdated:
    """What rows of a table lack of today's declaration.

    Attributes:
        why: What has changed since they were made.
        command: The command that builds the table again.
    """

    why: str
    command: Command

    @property
    def text(self) -> str:
        """The same as a note of a run."""
        return Phrase(f"{self.why}; ", self.command, " builds it again")


def outdated_rows(state: TableState, entity: Entity, lake: LakeSettings) -> tuple[Outdated, ...]:
    """Return why rows of a table lack what the entity declares now.

    Of the expressions of tables that earlier versions of Lakewright made, nothing is known.

    Args:
        state: The table.
        entity: The entity, with the names of the run.
        lake: The settings of the lake.
    """
    if not state.exists or state.is_empty or entity.strategy is Strategy.FULL:
        return ()
    kept = state.properties.get(EXPRESSIONS_PROPERTY)
    changed = () if kept is None else _changed_expressions(json.loads(kept), entity)
    others = (
        *_former_hashes(state),
        *_source_keys(state, entity, lake),
        *_changed_history(state, entity, lake),
        *_changed_times(state, entity, lake),
    )
    return (*changed, *(Outdated(why, rebuild_command(entity)) for why in others))


def rebuild_command(entity: Entity, names: Collection[str] = ()) -> Command:
    """Return the command that builds an entity's table again.

    Args:
        entity: The entity, with the names of a run.
        names: Entries that its expressions use. A rebuild belongs to no job, so that those of a job's
            environment are given by `-D`; a secret becomes `<name>`, which no shell accepts.
    """
    entries = entity.scope.job_entries
    argv = ["rebuild", entity.called]
    for name in sorted(names):
        if name in entries and name not in entity.scope.definitions:
            is_secret = is_secret_name(name)
            argv += ["-D", Placeholder(f"{name}=<{name}>") if is_secret else f"{name}={entries[name]}"]
    return Command(*argv)


def _changed_expressions(kept: Mapping[str, object], entity: Entity) -> tuple[Outdated, ...]:
    """Return what has changed of the expressions, given what the table's property says of them."""
    then = kept.get(GIVEN)
    given: Mapping[str, str] = then if isinstance(then, Mapping) else {}
    before = {name: digest for name, digest in kept.items() if name != GIVEN}
    now = definition_digests(entity)
    changed = _differing(before, expression_digests(entity, now))
    by_files = _differing(before, expression_digests(entity, given))
    of_files = _of_files(entity, [name for name in changed if name in by_files], now)
    return (*of_files, *_of_values(entity, [name for name in changed if name not in by_files], given, now))


def _differing(before: Mapping[str, object], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {**before, **now} if before.get(name) != now.get(name))


def _of_files(entity: Entity, changed: Sequence[str], given: Collection[str]) -> tuple[Outdated, ...]:
    """Return what has changed in the files: expressions, or entries that they use."""
    if not changed:
        return ()
    used = entries_used(entity, given, changed)
    it = "they use" if len(changed) > 1 else "it uses"
    entries = f", or an entry of an environment that {it} ({', '.join(sorted(used))})," if used else ""
    verb = "has" if len(changed) == 1 or used else "have"
    reason = f"{_named(changed)}{entries} {verb} changed since the table was built: {_KEPT}"
    return (Outdated(reason, rebuild_command(entity, used)),)


def _of_values(
    entity: Entity, changed: Sequence[str], then: Mapping[str, str], now: Mapping[str, str]
) -> tuple[Outdated, ...]:
    """Return what has changed only because `-D` gives names other values than when the table was built."""
    if not changed:
        return ()
    used = entries_used(entity, now, changed)
    names = [name for name in _differing(then, now) if name in used] or _differing(then, now)
    verb = "has another value" if len(names) == 1 else "have other values"
    reason = (
        f"{', '.join(names)}, which {_named(changed)} uses, {verb} than when the table was built, "
        f"{'by' if now else 'without'} -D: {_KEPT}"
    )
    return (Outdated(reason, rebuild_command(entity, used)),)


_KEPT = "rows that no slice changes keep their values"


def _named(changed: Sequence[str]) -> str:
    columns = [name for name in changed if name != TRANSFORMATIONS]
    words = [f"the expression of {', '.join(columns)}"] if columns else []
    words += ["the list of transformations"] if TRANSFORMATIONS in changed else []
    return " and ".join(words)


def _former_hashes(state: TableState) -> Iterator[str]:
    """Yield that source hashes are of a former version, with which the table goes on."""
    version = state.properties.get(HASH_VERSION_PROPERTY)
    if version in KNOWN_VERSIONS - {HASH_VERSION}:
        yield (
            f"source hashes are of version {version}: a record counts as changed if its source writes an "
            "equal value in another type, such as 5.0 for 5"
        )


def _source_keys(state: TableState, entity: Entity, lake: LakeSettings) -> Iterator[str]:
    """Yield that primary keys are of the source's values, if their types have other values than these."""
    if is_key_cast(state.properties):
        return
    kept, form = kept_key(state.properties), canonical_form(state.properties, lake.timezone)
    for column in entity.columns:
        former = kept.get(column.source.lower())
        if former is None or column.type is None or form.class_of(column.type) == former:
            continue
        yield (
            f"primary keys are of {column.source!r} before it is converted to {column.type.ddl}: values that "
            "are equal only after that, such as the texts 7 and 07 of a number, are different records"
        )


def _changed_history(state: TableState, entity: Entity, lake: LakeSettings) -> Iterator[str]:
    kept = state.properties.get(HISTORY_PROPERTY) or None
    declared = history_text(entity, lake)
    if kept is None and declared is None:
        return
    if kept is None:
        yield "the table was built without the versions of history_from"
    elif declared is None:
        yield "the table holds versions of a history_from that is no longer declared"
    elif not is_same_history(kept, declared):
        yield "history_from has changed since the table was built"


def _changed_times(state: TableState, entity: Entity, lake: LakeSettings) -> Iterator[str]:
    """Yield that times without an offset were read in another time zone than they are now."""
    before = state.properties.get(NAIVE_TIMES_PROPERTY, REFUSED_TIMES)
    now = entity.settings.naive_zone(lake.timezone) or REFUSED_TIMES
    own = SystemColumns(lake.systemfield_prefix, entity.destination).all
    times = (
        each.name
        for each in state.columns
        if each.name.lower() not in own and has_part(each.type, lambda kind: kind == Scalar("timestamp"))
    )
    # Where they were refused, the table has none.
    if before not in (REFUSED_TIMES, now) and (name := next(times, None)) is not None:
        are = "are refused now" if now == REFUSED_TIMES else f"are read in {now} now"
        yield f"times without an offset, as {name!r} may have, were read in {before}, and {are}"


def narrowed_columns(state: TableState, entity: Entity) -> Iterator[str]:
    """Yield for each column with another type than the table keeps what happens, and what to do."""
    otherwise = Phrase(", or build the table again with ", rebuild_command(entity))
    for column in entity.columns:
        own = state.column(column.silver)
        if own is None or column.type is None:
            continue
        wanted = plain_type(column.type)  # tables have no texts of bounded length
        if widened(own.type, wanted) == wanted:
            continue
        if _may_fail(own.type, wanted):
            lost = wanted
        elif _may_fail(wanted, own.type):
            lost = own.type
        else:
            continue
        declared, kept = column.type.ddl, own.type.ddl
        yield (
            f"column {column.silver!r} is declared as {declared}, but the table has {kept} and keeps it: "
            f'{_effect(lost, entity)}; declare `datatype: "{kept}"`'
        ) + otherwise


def _may_fail(source: Type, target: Type) -> bool:
    """Return whether a type has values that another one lacks."""
    return convert("v", source, target, column="v").fault is not None


def _effect(lost: Type, entity: Entity) -> str:
    """Return what becomes of values of new slices that do not fit a type."""
    if entity.settings.schema_drift == "fail":
        return "each slice fails, because of `schema_drift: fail`"
    fate = "is put aside as a bad row" if entity.settings.on_bad_rows == "quarantine" else "fails its slice"
    return f"a value of a new slice that does not fit {lost.ddl} {fate}"
