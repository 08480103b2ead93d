"""The types of the columns of a Parquet file, found in its footer, and how Spark is to read them.

Types that Spark lacks have names of their own here: `timestamp(9)` and `timestamp_ntz(9)` count nanoseconds,
`time(3)`, `time(6)` and `time(9)` are times of day, and `void` is the type of a column that has only nulls.

Source: the Apache Parquet format, "Logical Types"; Spark's `ParquetToSparkSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.lake.parquet_footer import SCHEMA, CompactReader, expect, sparks_schema
from lakewright.lake.parquet_footer import Struct as Element
from lakewright.schema.conversion import convert
from lakewright.schema.fault import Owner
from lakewright.schema.rules import Unit, ValueRules
from lakewright.schema.shape import NESTED, has_part, mapped, parts, rebuilt_sql
from lakewright.schema.types import MOST_DIGITS, Array, Decimal, MapOf, Scalar, Struct, StructField, Type

# Numbers of fields in the structs SchemaElement, LogicalType and those inside it.
_PHYSICAL, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 1, 3, 4, 5, 6, 7, 8, 10
_REPEATED = 2
_OF_GROUPS = {2: "map", 3: "list", 16: "variant"}
_UNITS = {1: 3, 2: 6, 3: 9}

_PHYSICAL_TYPES = ("boolean", "int", "bigint", "timestamp", "float", "double", "binary", "binary")
_WHOLE = {(8, True): "tinyint", (16, True): "smallint", (32, True): "int", (64, True): "bigint"}
_WHOLE |= {(8, False): "smallint", (16, False): "int", (32, False): "bigint"}
_LOGICAL_TYPES = {1: "string", 4: "string", 6: "date", 11: "void", 12: "string", 13: "binary", 14: "uuid"}
_LOGICAL_TYPES |= {15: "float16", 16: "variant", 17: "geometry", 18: "geography"}
_CONVERTED_TYPES = {0: "string", 4: "string", 6: "date", 7: "time(3)", 8: "time(6)", 9: "timestamp"}
_CONVERTED_TYPES |= {10: "timestamp", 11: "smallint", 12: "int", 13: "bigint", 15: "tinyint", 16: "smallint"}
_CONVERTED_TYPES |= {17: "int", 18: "bigint", 19: "string", 20: "binary", 21: "interval"}
_UINT_64, _CONVERTED_DECIMAL = 14, 5
_MAPS, _LIST = (1, 2), 3

_MOST_LEVELS = 120
"""Levels of structs, lists and maps inside each other; with more, functions here would not end."""

_TOO_DEEP = f"a column has more than {_MOST_LEVELS} levels of structs, lists and maps inside each other"

_READ = {"timestamp(9)": "bigint", "timestamp_ntz(9)": "bigint", "time(3)": "int", "time(6)": "bigint"}
_READ |= {"time(9)": "bigint", "uuid": "binary"}
_TRUE = {"timestamp(9)": "timestamp", "timestamp_ntz(9)": "timestamp_ntz", "time(3)": "string"}
_TRUE |= {"time(6)": "string", "time(9)": "string", "uuid": "string"}
_HOMELESS = frozenset(("float16", "interval"))
_ONLY_SPARK = frozenset(("variant", "geometry", "geography"))


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says.

    Attributes:
        columns: The columns with their types.
        rows: Number of the file's rows.
        sparks: The schema that Spark has written itself, as JSON; None if it hasn't.
    """

    columns: Struct
    rows: int
    sparks: bytes | None


class Footers:
    """Reads footers. Those that begin with a schema that was read before take no time."""

    def __init__(self) -> None:
        self._known: list[tuple[bytes, Struct]] = []

    def read(self, footer: bytes) -> Footer:
        """Return what a footer says.

        Raises:
            ValueError: It is damaged.
        """
        try:
            beginning, columns = self._schema(footer)
            _, rows = next(CompactReader(footer, len(beginning)).fields())
            count, sparks = expect(rows, int), sparks_schema(footer)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        except (AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError) as error:
            raise ValueError(f"its footer is damaged: {error}") from error
        if max((_depth(each.type) for each in columns.fields), default=0) > _MOST_LEVELS:
            raise ValueError(_TOO_DEEP)
        return Footer(columns, count, sparks)

    def _schema(self, footer: bytes) -> tuple[bytes, Struct]:
        for beginning, columns in self._known:
            if footer.startswith(beginning):
                return beginning, columns
        reader = CompactReader(footer)
        for number, value in reader.fields():
            if number == SCHEMA:
                found = footer[: reader.position], _columns(expect(value, list))
                self._known.append(found)
                return found
        raise ValueError("the schema is missing")


def _depth(kind: Type) -> int:
    inside = max((_depth(part) for _, part, _ in parts(kind)), default=0)
    return 1 + inside if isinstance(kind, NESTED) else 0


def _columns(elements: Sequence[Element]) -> Struct:
    root, *rest = elements
    left = iter(rest)
    return Struct(tuple(_field(next(left), left) for _ in range(expect(root.get(_CHILDREN, 0), int))))


def _field(element: Element, left: Iterator[Element]) -> StructField:
    """Return the field of an element of the schema; its children are taken from the elements after it."""
    node = _node(element, left)
    kind = _type(node)
    # Outside of lists, a repeated field is a list that holds its values.
    return StructField(node.name, Array(kind) if node.is_repeated else kind)


@dataclass(frozen=True, slots=True)
class _Node:
    """An element of the schema with those inside it."""

    element: Element
    children: tuple[_Node, ...] | None

    @property
    def name(self) -> str:
        return expect(self.element.get(_NAME), bytes).decode("utf-8", "replace")

    @property
    def is_repeated(self) -> bool:
        return self.element.get(_REPETITION) == _REPEATED

    @property
    def logical(self) -> tuple[int | None, Mapping[int, Any]]:
        """The number of its logical type with its parameters."""
        logical = expect(self.element.get(_LOGICAL, {}), dict)
        return next(((number, value or {}) for number, value in logical.items()), (None, {}))


def _node(element: Element, left: Iterator[Element]) -> _Node:
    count = element.get(_CHILDREN)
    if not count and _PHYSICAL in element:  # some writers give a column the number 0
        return _Node(element, None)
    return _Node(element, tuple(_node(next(left), left) for _ in range(expect(count or 0, int))))


def _type(node: _Node) -> Type:
    """Return the type of the values of a node, of one of them if it is repeated."""
    if node.children is None:
        return _leaf(node)
    number, _ = node.logical
    kind, converted = _OF_GROUPS.get(number or 0), node.element.get(_CONVERTED)
    if kind == "variant":
        return Scalar(kind)
    if (kind == "list" or converted == _LIST) and len(node.children) == 1 and node.children[0].is_repeated:
        return Array(_element(node.children[0], node.name))
    if (kind == "map" or converted in _MAPS) and len(node.children) == 1:
        entry = node.children[0].children or ()
        if len(entry) == 2:
            return MapOf(_whole_type(entry[0]), _whole_type(entry[1]))
    return Struct(tuple(StructField(child.name, _whole_type(child)) for child in node.children))


def _whole_type(node: _Node) -> Type:
    kind = _type(node)
    return Array(kind) if node.is_repeated else kind


def _element(repeated: _Node, parent: str) -> Type:
    """Return the type of a list's elements; in old layouts the repeated node is the element itself.

    Source: the Apache Parquet format, "Backward-compatibility rules" of lists.
    """
    children = repeated.children
    is_element = children is None or len(children) != 1 or repeated.name in {"array", f"{parent}_tuple"}
    if is_element or children is None:
        return _type(repeated)
    return _whole_type(children[0])


def _leaf(node: _Node) -> Type:
    element = node.element
    number, values = node.logical
    physical = expect(element.get(_PHYSICAL), int)
    found = _logical_leaf(number, values)
    if found is None and number is None:
        found = _converted_leaf(element)
    return found or Scalar(_PHYSICAL_TYPES[physical])


def _logical_leaf(number: int | None, values: Mapping[int, Any]) -> Type | None:
    if number == 5:
        return Decimal(expect(values.get(2), int), expect(values.get(1, 0), int))
    if number in {7, 8}:
        unit = _UNITS[next(iter(expect(values.get(2), dict)))]
        if number == 7:
            return Scalar(f"time({unit})")
        name = "timestamp" if values.get(1) else "timestamp_ntz"
        return Scalar(f"{name}({unit})" if unit == 9 else name)
    if number == 10:
        bits, is_signed = expect(values.get(1), int), bool(values.get(2))
        return Decimal(20, 0) if (bits, is_signed) == (64, False) else Scalar(_WHOLE[bits, is_signed])
    name_ = _LOGICAL_TYPES.get(number or 0)
    return None if name_ is None else Scalar(name_)


def _converted_leaf(element: Element) -> Type | None:
    converted = element.get(_CONVERTED)
    if converted == _CONVERTED_DECIMAL:
        return Decimal(expect(element.get(_PRECISION), int), expect(element.get(_SCALE, 0), int))
    if converted == _UINT_64:
        return Decimal(20, 0)
    name = None if converted is None else _CONVERTED_TYPES.get(converted)
    return None if name is None else Scalar(name)


def read_type(kind: Type) -> Type:
    """Return the type that Spark is to read values as."""
    return mapped(kind, lambda leaf: _named(leaf, _READ))


def true_type(kind: Type) -> Type:
    """Return the type of values after `true_sql`."""
    return mapped(kind, lambda leaf: _named(leaf, _TRUE))


def _named(leaf: Type, names: Mapping[str, str]) -> Type:
    return Scalar(names.get(leaf.name, leaf.name)) if isinstance(leaf, Scalar) else leaf


def is_foreign(kind: Type) -> bool:
    """Return whether only Spark itself knows a type, or a part of it."""
    return has_part(kind, lambda part: isinstance(part, Scalar) and part.name in _ONLY_SPARK)


def homeless(kind: Type, column: str) -> tuple[str, str] | None:
    """Return the place and the name of the first type in a column that can't be read; None without any.

    Example:
        >>> homeless(Array(Decimal(50, 2)), "prices")
        ('prices', 'decimal(50,2)')
    """
    is_wide = isinstance(kind, Decimal) and kind.precision > MOST_DIGITS
    if is_wide or (isinstance(kind, Scalar) and kind.name in _HOMELESS):
        return column, kind.ddl
    inside = (homeless(part, column + step) for step, part, _ in parts(kind))
    return next((found for found in inside if found is not None), None)


def true_sql(value: str, kind: Type, column: str) -> str:
    """Return SQL of values as what they are, of those that were read in `read_type`; null stays null.

    Times with nanoseconds that no microsecond is equal to fail the query.

    Args:
        value: SQL of the value.
        kind: The type in the file.
        column: The place, for errors.
    """
    return rebuilt_sql(value, kind, _true_part, column)


def _true_part(value: str, kind: Type, column: str, _: int) -> str | None:
    if true_type(kind) == kind:
        return value
    return None if isinstance(kind, NESTED) else _leaf_sql(value, kind.ddl, column)


def _leaf_sql(value: str, name: str, column: str) -> str:
    if name.startswith("timestamp"):
        target = Scalar("timestamp_ntz" if name.startswith("timestamp_ntz") else "timestamp")
        rules = ValueRules(unit=Unit.NANOS, owner=Owner.SLICE)
        return convert(value, Scalar("bigint"), target, column=column, rules=rules).strict
    if name == "uuid":
        groups = "(.{8})(.{4})(.{4})(.{4})(.{12})"
        return f"regexp_replace(lower(hex({value})), '{groups}', '$1-$2-$3-$4-$5')"
    digits = int(name[5])
    unit = 10**digits
    clock = f"({value} div {unit})"
    parts = (
        f"lpad(cast({clock} div {seconds} % {limit} as string), 2, '0')"
        for seconds, limit in ((3600, 24), (60, 60), (1, 60))
    )
    fraction = f"lpad(cast({value} % {unit} as string), {digits}, '0')"
    if digits == 9:  # nanoseconds are shown only if there are any
        fraction = f"if({value} % 1000 = 0, left({fraction}, 6), {fraction})"
    shown = (
        f"if({value} % {unit} = 0, '', concat('.', rpad({fraction}, greatest(length({fraction}), 6), '0')))"
    )
    return f"concat(concat_ws(':', {', '.join(parts)}), {shown})"
