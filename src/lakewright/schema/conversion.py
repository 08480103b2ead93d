"""Conversion of values of any type to any other, as SQL: exactly, or as misfits with their place.

This is the one way from raw values to typed ones. Structs are converted field by field, by name in any case;
a text becomes a struct, list or map as the JSON that it is; a variant by the kind of its value.

Source: the rules of reading, "Two steps" and "What fits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakewright.schema.fault import Reason, all_faults_sql, misfit_sql, placed_sql, raised_sql
from lakewright.schema.rules import STRICT, ValueRules
from lakewright.schema.scalars import Leaf, class_of, convert_leaf, within_years_sql
from lakewright.schema.shape import NESTED, matched_fields, parts, plain_type
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VARIANT, VOID, Array, MapOf, Scalar, Struct, Type


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted value.

    Attributes:
        value: SQL of the value as it was.
        sql: SQL of the converted value; what does not fit is null, as a whole or inside.
        faults: SQL of each misfit that there may be, as JSON text that is null if there is none.
        misfit: SQL of the misfit of a value that is known not to fit; None if `fault` finds it.
        why_never: Why no value of the type fits but null; None if values may fit.
        is_nested: Whether parts inside the value are converted, so that one may be null where the whole is
            not.
    """

    value: str
    sql: str
    faults: tuple[str, ...] = ()
    misfit: str | None = None
    why_never: Reason | None = None
    is_nested: bool = False

    @property
    def fault(self) -> str | None:
        """SQL of the first misfit, null if all fits; None if every value fits."""
        return first_of(self.faults)

    @property
    def is_never(self) -> bool:
        """Whether no value of the type fits but null."""
        return self.why_never is not None

    @property
    def strict(self) -> str:
        """SQL of the converted value that fails the query with the first misfit."""
        if self.fault is None:
            return self.sql
        raised = raised_sql(self.misfit or self.fault)
        if self.is_nested:
            return f"if(({self.fault}) is null, {self.sql}, {raised})"
        # The value is converted once; the fault is worked out only for a misfit.
        return f"coalesce({self.sql}, if({self.value} is null, null, {raised}))"

    def placed(self, place: str) -> Conversion:
        """Return the conversion with misfits that name where their row is from.

        Args:
            place: SQL of the place as a text.
        """
        faults = tuple(placed_sql(each, place) for each in self.faults)
        return replace(self, faults=faults, misfit=self.misfit and placed_sql(self.misfit, place))


def convert(value: str, source: Type, target: Type, *, column: str, rules: ValueRules = STRICT) -> Conversion:
    """Return a value converted from one type to another; null stays null.

    Every pair of types has a conversion; where no value fits, each one is a misfit.

    Args:
        value: SQL of the value.
        source: Its type.
        target: The type to convert it to.
        column: The column, or the path inside it, as misfits name it.
        rules: How values are written.

    Example:
        >>> convert("n", Scalar("int"), Scalar("bigint"), column="n").strict
        'cast(n as bigint)'
        >>> convert("n", Scalar("boolean"), Scalar("date"), column="n").is_never
        True
    """
    return _Place(column, rules).converted(value, source, target)


def first_of(faults: Sequence[str]) -> str | None:
    """Return SQL of the first of these texts that is not null; None if there are none."""
    return f"coalesce({', '.join(faults)})" if len(faults) > 1 else next(iter(faults), None)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place inside a column, at which values are converted.

    Attributes:
        column: The place, as misfits name it.
        depth: How many lambdas it is in.
    """

    column: str
    rules: ValueRules
    depth: int = 0

    def converted(self, value: str, source: Type, target: Type) -> Conversion:
        """Return a value at this place, converted."""
        if plain_type(source) == plain_type(target) and not any(_limits(source, target, self.rules)):
            return Conversion(value, value)
        if source == VOID:
            return Conversion(value, f"cast(null as {plain_type(target).ddl})")
        for one, other, rule in _PAIRS:
            if isinstance(source, one) and isinstance(target, other):
                return rule(self, value, source, target)
        if source == VARIANT and target != VARIANT:
            return self._of_variant(value, target)
        is_json = class_of(source) == "text" and target == VARIANT
        if is_json or isinstance(target, NESTED):
            return self._of_json(value, source, target)
        return self._leaf(value, source, target)

    def _inside(self, part: str) -> _Place:
        return replace(self, column=f"{self.column}.{part}")

    def _deeper(self) -> _Place:
        return replace(self, depth=self.depth + 1)

    @property
    def _item(self) -> str:
        return f"x{self.depth}"

    def _fault(self, value: str, source: Type, target: Type, reason: Reason, *, when: str) -> str:
        """Return SQL of the misfit if a condition holds."""
        return f"if({when}, {self._misfit(value, source, target, reason)}, null)"

    def _misfit(self, value: str, source: Type, target: Type, reason: Reason) -> str:
        if isinstance(source, NESTED):
            shown = f"to_json({value})"
        else:
            shown = f"hex({value})" if source == Scalar("binary") else f"cast({value} as string)"
        return misfit_sql(shown, reason, column=self.column, target=target.ddl, owner=self.rules.owner)

    def _never(self, value: str, source: Type, target: Type, reason: Reason) -> Conversion:
        fault = self._fault(value, source, target, reason, when=f"{value} is not null")
        return Conversion(value, f"cast(null as {plain_type(target).ddl})", (fault,), why_never=reason)

    def _leaf(self, value: str, source: Type, target: Type) -> Conversion:
        if self.rules.is_lenient or (self.rules.is_assigned and not _is_checked(source, target)):
            return Conversion(value, f"cast({value} as {plain_type(target).ddl})")
        if source == target and (bounded := within_years_sql(value, source)) is not None:
            leaf: Leaf | None = Leaf(bounded, Reason.OUT_OF_RANGE)
        else:
            leaf = convert_leaf(value, source, target, self.rules)
        if leaf is None:
            return self._never(value, source, target, self._why_never(source, target))
        if leaf.reason is None:
            return Conversion(value, leaf.sql)
        misfit = self._misfit(value, source, target, leaf.reason)
        fault = f"if({value} is not null and ({leaf.sql}) is null, {misfit}, null)"
        return Conversion(value, leaf.sql, (fault,), misfit)

    @staticmethod
    def _why_never(source: Type, target: Type) -> Reason:
        is_counted = target.ddl in ("date", "timestamp", "timestamp_ntz")
        is_number = class_of(source) in ("whole", "decimal", "float")
        return Reason.NO_UNIT if is_counted and is_number else Reason.NO_CONVERSION

    def _struct(self, value: str, source: Struct, target: Struct) -> Conversion:
        found = matched_fields(source, target, by_position=self.rules.by_position)
        if source.fields and target.fields and not any(found):
            return self._never(value, source, target, Reason.NO_CONVERSION)
        given = (
            ("null", VOID) if own is None else (f"{value}.{name_sql(own.name)}", own.type) for own in found
        )
        return self._named_struct(value, value, target, given)

    def _named_struct(
        self, value: str, present: str, target: Struct, given: Iterable[tuple[str, Type]], *faults: str
    ) -> Conversion:
        """Return a struct of values, each with its type; null where `present` is null."""
        parts, found = [], [*faults]
        for field, (own, kind) in zip(target.fields, given, strict=True):
            inner = self._inside(field.name).converted(own, kind, field.type)
            parts.append(f"{text_sql(field.name)}, {inner.sql}")
            found += inner.faults
        made = f"if({present} is null, null, named_struct({', '.join(parts)}))"
        return Conversion(value, made, tuple(found), is_nested=True)

    def _map_of_fields(self, value: str, source: Struct, target: MapOf) -> Conversion:
        """Return a struct as a map of its fields that are not null; their names are the keys."""
        entries: list[str] = []
        faults: list[str] = []
        for field in source.fields:
            own = f"{value}.{name_sql(field.name)}"
            name = text_sql(field.name)
            key = replace(self, column=f"{self.column} key").converted(name, TEXT, target.key)
            held = self._inside(field.name).converted(own, field.type, target.value)
            # A name that is no key must not fail the rows that lack it.
            made = key.sql if key.sql == name else f"if({own} is null, null, {key.sql})"
            entries.append(f"struct({made} as key, {held.sql} as value)")
            faults += (f"if({own} is null, null, {fault})" for fault in key.faults)
            faults += held.faults
        if not entries:
            empty = f"cast(map() as {plain_type(target).ddl})"
            return Conversion(value, f"if({value} is null, null, {empty})")
        present = f"filter(array({', '.join(entries)}), {self._item} -> {self._item}.value is not null)"
        made = f"map_from_entries({present})"
        if target.key != TEXT:
            made, twice = self._map_of(present, value, source, target)
            faults = [f"coalesce({', '.join((*faults, twice))})"]  # keys that do not fit are equal
        return Conversion(value, f"if({value} is null, null, {made})", tuple(faults), is_nested=True)

    def _array(self, value: str, source: Array, target: Array) -> Conversion:
        inner = self._deeper().converted(self._item, source.element, target.element)
        faults = _first_in(value, self._item, inner.faults)
        return Conversion(value, f"transform({value}, {self._item} -> {inner.sql})", faults, is_nested=True)

    def _map(self, value: str, source: MapOf, target: MapOf) -> Conversion:
        deeper, item = self._deeper(), self._item
        of_key = replace(deeper, column=f"{self.column} key")
        key = of_key.converted(f"{item}.key", source.key, target.key)
        held = deeper.converted(f"{item}.value", source.value, target.value)
        found = _first_in(f"map_entries({value})", item, (*key.faults, *held.faults))
        if key.sql == f"{item}.key":
            entries = f"transform(map_entries({value}), {item} -> struct({key.sql}, {held.sql}))"
            return Conversion(value, f"map_from_entries({entries})", found, is_nested=True)
        entries = f"transform(map_entries({value}), {item} -> struct({key.sql} as key, {held.sql} as value))"
        made, twice = self._map_of(entries, value, source, target)
        return Conversion(value, made, (f"coalesce({', '.join((*found, twice))})",), is_nested=True)

    def _map_of(self, entries: str, value: str, source: Type, target: MapOf) -> tuple[str, str]:
        """Return a map of entries whose keys are converted, null if two have one key; and its misfit then."""
        keys = f"({entries}).key"
        is_twice = f"size({keys}) > size(array_distinct({keys}))"
        fault = self._fault(value, source, target, Reason.NOT_OF_SHAPE, when=is_twice)
        return f"if({is_twice}, null, map_from_entries({entries}))", fault

    def _of_nested(self, value: str, source: Type, target: Type) -> Conversion:
        """Return a struct, list or map as JSON text, or as a variant."""
        if target == VARIANT:
            return Conversion(value, f"to_variant_object({value})")
        if class_of(target) != "text":
            return self._never(value, source, target, Reason.NO_CONVERSION)
        text = f"to_json({value})"
        if target == TEXT:
            return Conversion(value, text)
        inner = self._leaf(text, TEXT, target)
        return replace(inner, value=value)

    def _of_json(self, value: str, source: Type, target: Type) -> Conversion:
        """Return a text as what its JSON is."""
        if class_of(source) != "text":
            return self._never(value, source, target, Reason.NO_CONVERSION)
        variant = f"try_parse_json({value})"
        no_json = self._fault(
            value, source, target, Reason.NOT_JSON, when=f"{value} is not null and {variant} is null"
        )
        if target == VARIANT:
            return Conversion(value, variant, (no_json,))
        inner = self._of_variant(variant, target)
        return Conversion(value, inner.sql, (no_json, *inner.faults), is_nested=True)

    def _of_variant(self, value: str, target: Type) -> Conversion:
        """Return the value in a variant; a JSON null is null."""
        if isinstance(target, Struct):
            return self._object_of_variant(value, target)
        if isinstance(target, Array):
            return self._parts_of_variant(value, target, Array(VARIANT), self._array)
        if isinstance(target, MapOf):
            return self._parts_of_variant(value, target, MapOf(TEXT, VARIANT), self._map)
        text = f"cast({value} as string)"
        if class_of(target) == "text":
            return replace(self._leaf(text, TEXT, target), value=text)
        by_text = self._leaf(text, TEXT, target)
        if class_of(target) != "whole":
            return replace(by_text, value=text)
        # A number that is written with a fraction of zeros is whole, a text like that is none.
        number = f"try_cast({text} as decimal(38,0))"
        is_same = f"{number} = try_cast({text} as double) and schema_of_variant({value}) <> 'STRING'"
        made = f"coalesce({by_text.sql}, if({is_same}, try_cast({number} as {target.ddl}), null))"
        fault = self._fault(
            text, TEXT, target, Reason.NOT_WRITTEN_SO, when=f"{text} is not null and ({made}) is null"
        )
        return Conversion(text, made, (fault,))

    def _misshapen(self, value: str, parts: str, target: Type) -> str:
        text = f"cast({value} as string)"
        return self._fault(
            text, TEXT, target, Reason.NOT_OF_SHAPE, when=f"{text} is not null and ({parts}) is null"
        )

    def _object_of_variant(self, value: str, target: Struct) -> Conversion:
        fields = f"try_cast({value} as map<string, variant>)"
        given = ((f"try_element_at({fields}, {text_sql(each.name)})", VARIANT) for each in target.fields)
        return self._named_struct(value, fields, target, given, self._misshapen(value, fields, target))

    def _parts_of_variant(
        self, value: str, target: Type, shape: Type, rule: Callable[[str, Any, Any], Conversion]
    ) -> Conversion:
        """Return a list or map in a variant, whose parts a rule converts once it has that shape."""
        found = f"try_cast({value} as {shape.ddl})"
        inner = rule(found, shape, target)
        return replace(inner, value=value, faults=(self._misshapen(value, found, target), *inner.faults))


def _first_in(list_: str, item: str, faults: Sequence[str]) -> tuple[str, ...]:
    """Return SQL of all misfits of the first element of a list that has any; nothing if none can have one."""
    if not faults:
        return ()
    found = f"filter(transform({list_}, {item} -> {all_faults_sql(faults)}), fault -> fault is not null)"
    return (f"get({found}, 0)",)


def _is_checked(source: Type, target: Type) -> bool:
    """Return whether a value that is assigned may not fit."""
    numbers = ("whole", "decimal", "float")
    if class_of(target) == "text":
        return target != TEXT
    return class_of(source) == "text" or (class_of(source) in numbers and class_of(target) in numbers)


_PAIRS: Sequence[tuple[Any, type, Callable[[_Place, str, Any, Any], Conversion]]] = (
    (Struct, Struct, _Place._struct),
    (Struct, MapOf, _Place._map_of_fields),
    (Array, Array, _Place._array),
    (MapOf, MapOf, _Place._map),
    (NESTED, object, _Place._of_nested),
)


def _limits(source: Type, target: Type, rules: ValueRules) -> Iterator[bool]:
    """Yield for each part whether a value may be a misfit of it, though it keeps its type."""
    if isinstance(source, NESTED) and type(source) is type(target):
        for (_, own, _), (_, wanted, _) in zip(parts(source), parts(target), strict=False):
            yield from _limits(own, wanted, rules)
    else:
        yield source != target and not rules.is_lenient
        yield rules.is_bounded and within_years_sql("x", target) is not None
