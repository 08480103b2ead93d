"""Checks that a slice has the columns that its entity needs.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns, Rename columns).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError
from lakewright.schema.names import look_alike, shown
from lakewright.schema.types import Struct, Type

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.system_columns import SystemColumns


_CORRECT = "Correct the slice, or remove the column from the entity's `columns`."
_OR_OPTIONAL = (
    "Correct the slice; declare the column with `optional: true` if slices may lack it; or remove it from "
    "the entity's `columns`."
)

_DECLARE_AS_IT_IS = "Correct the name in the slice, or declare the column by the name that it has there."

_SIGNS = (";", "\t", "|")
"""Signs that may separate the fields of a CSV slice whose header was read as one column."""

MOST_LISTED = 30
"""Number of columns that an error lists."""


def check_declared_columns(
    names: Iterable[str],
    entity: Entity,
    system: SystemColumns,
    added: frozenset[str],
    *,
    fields: Mapping[str, Sequence[str]],
) -> None:
    """Raise `SchemaDriftError` unless a slice has every declared column that it must have.

    A header of CSV in which another separator than the declared one seems to stand is an error also if the
    slice may lack all columns.

    Args:
        names: Columns of the slice after the entity's transformations.
        entity: The entity.
        system: Names of its system columns.
        added: Names, in lower case, of columns that were added with nulls.
        fields: The paths of the fields of structs, by the names of their columns in lower case.
    """
    names = [name for name in names if name.lower() not in added]
    fixed = {system.key.lower(), *(name.lower() for name in entity.names_with_values)}
    optional = {
        column.source.lower()
        for column in entity.columns
        if not (column.is_business_key or column.is_calculated)
        and fixed.isdisjoint((column.source.lower(), column.silver.lower()))
    }
    sources = [column.source for column in entity.columns if not (column.is_calculated or column.omit)]
    made = {column.source.lower() for column in entity.calculated}
    wanted = [name for name in sources if name.lower() not in added | made]
    may_be_unread = entity.settings.slice_format.kind == "csv" and all(
        each.optional for each in entity.columns if not each.is_calculated
    )
    checked = sources if may_be_unread and _other_separator(names, sources) else wanted
    check_columns(names, checked, optional, fields)


def check_columns(
    names: Iterable[str],
    wanted: Iterable[str],
    optional: Collection[str] = (),
    fields: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise `SchemaDriftError` unless every wanted column is present.

    Args:
        names: Columns of the slice.
        wanted: Columns that it must have.
        optional: Names, in lower case, of columns that may be declared to be optional.
        fields: The paths of the fields of structs, by the names of their columns in lower case.

    Raises:
        SchemaDriftError: Columns are missing; the message names all of them.
    """
    names, wanted = list(names), list(wanted)
    present = {name.lower() for name in names}
    missing = [name for name in wanted if name.lower() not in present]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        sign = _other_separator(names, wanted)
        remedy = _OR_OPTIONAL if any(name.lower() in optional for name in missing) else _CORRECT
        alike = {name: found for name in missing if (found := look_alike(name, names)) is not None}
        remedy = _DECLARE_AS_IT_IS if alike else remedy
        raise SchemaDriftError(
            f"the slice lacks the configured {columns} {', '.join(map(shown, missing))}; it has "
            f"{_listed(names)}{_fields_text(missing, fields or {})}{_alike_text(alike)}",
            remedy=remedy if sign is None else _separator_remedy(sign, remedy),
            details={"lacks": missing, "present": names},
        )


_DIFFERENCES = {
    "invisible": "in characters that cannot be seen",
    "form": "in the Unicode form of its characters",
}


def _alike_text(alike: Mapping[str, tuple[str, str]]) -> str:
    """Return how names differ from those that look the same, as the end of a sentence."""
    found = (
        f"; {shown(other)} differs from {shown(name)} only {_DIFFERENCES[how]}"
        for name, (other, how) in alike.items()
    )
    return "".join(found)


def _fields_text(missing: Iterable[str], fields: Mapping[str, Sequence[str]]) -> str:
    """Return the fields of the structs into which missing columns are paths, as the end of a sentence."""
    heads = dict.fromkeys(path.partition(".")[0].lower() for path in missing if "." in path)
    found = [_listed(fields[head]) for head in heads if fields.get(head)]
    return f", with the fields {', '.join(found)}" if found else ""


def lacking_setting_error(names: Sequence[str], column: str, setting: str) -> SchemaDriftError:
    """Return the error of a slice without the column that a setting of its entity names."""
    return SchemaDriftError(
        f"the slice lacks the column {shown(column)}, which `{setting}` of the entity names; it has "
        f"{_listed(names)}",
        remedy=f"Correct the slice, or the entity's `{setting}`.",
        details={"lacks": [column], "present": list(names)},
    )


def _listed(names: Sequence[str]) -> str:
    found = [shown(name) for name in names if not name.startswith("_lakewright_")]
    more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more if found else "no columns"


def _other_separator(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """Return the sign that seems to separate the fields of a header without wanted columns, or None.

    Args:
        names: The columns as they were read.
        wanted: The columns that are declared.

    Example:
        >>> _other_separator(["oid;day;amount"], ["oid"]), _other_separator(["oid", "day"], ["id"])
        (';', None)
    """
    headers, declared = list(names), {name.lower() for name in wanted}
    if not declared.isdisjoint(map(str.lower, headers)):
        return None
    found = [sign for sign in _SIGNS if any(sign in header for header in headers)]
    fits = (sign for sign in found if declared & set(_fields(headers, sign)))
    return next(fits, next(iter(found), None))


def _separator_remedy(sign: str, otherwise: str) -> str:
    """Return that a separator may have to be declared, before the remedy if that is not so."""
    named = "tab" if sign == "\t" else sign
    declared = f'declare it: `format: {{kind: csv, separator: "{named}"}}`'
    return f'If "{named}" separates the fields, {declared}. Otherwise: {otherwise[0].lower()}{otherwise[1:]}'


def _fields(headers: Iterable[str], sign: str) -> Iterator[str]:
    return (part.strip(' "').lower() for each in headers for part in each.split(sign))


def field_paths(kind: Type, path: str) -> Iterator[str]:
    """Yield the paths of the fields of a struct, and of those inside them.

    Example:
        >>> from lakewright.schema.types import Scalar, StructField
        >>> fields = (StructField("City", Scalar("string")), StructField("place", Scalar("int")))
        >>> list(field_paths(Struct(fields), "Address"))
        ['Address.City', 'Address.place']
    """
    if not isinstance(kind, Struct):
        yield path
        return
    for field in kind.fields:
        yield from field_paths(field.type, f"{path}.{field.name}")
