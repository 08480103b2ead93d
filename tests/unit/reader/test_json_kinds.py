"""Kinds of values in JSON, as Spark writes them, and the types that follow from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.reader.json_types import (
    DEEPEST,
    MIXED,
    NOTHING,
    JsonColumn,
    exact_type,
    is_nothing,
    json_columns,
    merged,
    parse_kind,
    with_doubles,
)
from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.models.type_text import parse_sql_type

BIGINT, DOUBLE, TEXT, FLAG = map(Scalar, ("bigint", "double", "string", "boolean"))


def struct(**fields: Type) -> Struct:
    return Struct(tuple(StructField(name, kind) for name, kind in fields.items()))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("VOID", NOTHING),
        ("BIGINT", BIGINT),
        ("DECIMAL(21,1)", Decimal(21, 1)),
        ("ARRAY<ARRAY<VOID>>", Array(Array(NOTHING))),
        ("OBJECT<>", Struct(())),
        ("OBJECT<a: BIGINT, A: BOOLEAN>", struct(a=BIGINT, A=FLAG)),
        ("OBJECT<OBJECT: VARIANT, DECIMAL: STRING>", struct(OBJECT=MIXED, DECIMAL=TEXT)),
        ("OBJECT<``: DOUBLE>", Struct((StructField("", DOUBLE),))),
        ("OBJECT<a: OBJECT<``: DOUBLE, b: VOID>, c: VOID>", struct(a=MIXED, c=NOTHING)),
        ("OBJECT<`a``: <b>, ``: `: OBJECT<>>", Struct((StructField("a`: <b>, `: ", Struct(())),))),
        ("OBJECT<`q\"'\n`: BIGINT>", Struct((StructField("q\"'\n", BIGINT),))),
        (
            "OBJECT<`1a`: BIGINT, `é.`: ARRAY<STRING>>",
            Struct((StructField("1a", BIGINT), StructField("é.", Array(TEXT)))),
        ),
    ],
)
def test_a_kind_is_read_as_spark_writes_it(text: str, kind: Type) -> None:
    assert parse_kind(text) == kind


@pytest.mark.parametrize(
    "text",
    ["", "OBJECT<", "ARRAY<", "ARRAY<BIGINT", "OBJECT<a: >", "OBJECT<a: BIGINT", "BIGINT, a", "?", ">"],
)
def test_what_spark_does_not_write_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_kind(text)


@pytest.mark.parametrize("levels", [DEEPEST, DEEPEST + 1, 5_000])
@pytest.mark.parametrize("open_", ["ARRAY<", "OBJECT<a: "])
def test_what_is_too_deep_to_tell_apart_is_of_several_kinds(levels: int, open_: str) -> None:
    kind, depth = parse_kind(open_ * levels + "BIGINT" + ">" * levels), 0
    while isinstance(kind, Array | Struct):
        kind, depth = kind.element if isinstance(kind, Array) else kind.fields[0].type, depth + 1
    assert (kind, depth) == ((BIGINT if levels == DEEPEST else MIXED), DEEPEST)


def test_the_type_of_the_deepest_values_is_read_back() -> None:
    """A column of a slice hands it on as text; at 32 levels, reading that text failed."""
    kind = parse_kind("OBJECT<a: " * DEEPEST + "VARIANT" + ">" * DEEPEST)
    assert isinstance(kind, Struct)
    (column,) = json_columns(kind, lambda _: None)
    assert column.inferred != column.raw
    assert parse_sql_type(column.inferred.ddl) == column.inferred


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (NOTHING, True),
        (Struct(()), True),
        (Array(Array(NOTHING)), True),
        (struct(a=NOTHING, b=Array(struct(c=NOTHING))), True),
        (struct(a=NOTHING, b=BIGINT), False),
        (MIXED, False),
    ],
)
def test_nulls_and_what_is_empty_are_no_values(kind: Type, expected: bool) -> None:
    assert is_nothing(kind) is expected


@pytest.mark.parametrize(
    ("kinds", "together"),
    [
        ((), NOTHING),
        ((NOTHING, BIGINT), BIGINT),
        ((BIGINT, Decimal(2, 1)), Decimal(21, 1)),
        ((Decimal(3, 2), Decimal(4, 1)), Decimal(5, 2)),
        ((Decimal(30, 0), Decimal(10, 10)), DOUBLE),
        ((BIGINT, DOUBLE), DOUBLE),
        ((BIGINT, TEXT), MIXED),
        ((Struct(()), BIGINT), MIXED),
        ((struct(a=BIGINT), struct(b=TEXT, a=TEXT)), struct(a=MIXED, b=TEXT)),
        ((Array(NOTHING), Array(BIGINT)), Array(BIGINT)),
    ],
)
def test_kinds_are_merged_as_spark_does(kinds: tuple[Type, ...], together: Type) -> None:
    """Seen in what `schema_of_variant_agg` gives for such values."""
    assert merged(kinds) == together


def column(kind: Type, target: Type | None = None) -> JsonColumn:
    (found,) = json_columns(struct(c=kind), lambda _: target)
    return found


@pytest.mark.parametrize(
    ("kind", "target", "raw", "inferred"),
    [
        (BIGINT, None, "bigint", "bigint"),
        (BIGINT, "int", "bigint", "bigint"),
        (FLAG, None, "boolean", "boolean"),
        (TEXT, "varchar(3)", "string", "string"),
        (Decimal(6, 2), None, "double", "double"),
        (Decimal(15, 0), None, "double", "double"),
        (Decimal(16, 2), None, "decimal(16,2)", "double"),
        (Decimal(21, 1), "double", "decimal(21,1)", "double"),
        (Decimal(19, 0), None, "decimal(20,0)", "double"),
        (Decimal(38, 0), None, "decimal(38,0)", "double"),
        (DOUBLE, None, "string", "double"),
        (DOUBLE, "decimal(10,2)", "string", "double"),
        (DOUBLE, "string", "string", "double"),
        (MIXED, None, "variant", "string"),
        (MIXED, "int", "variant", "string"),
        (BIGINT, "string", "variant", "bigint"),
        (FLAG, "char(2)", "variant", "boolean"),
        (struct(a=BIGINT), "string", "variant", "struct<a: bigint>"),
        (struct(a=BIGINT), "variant", "variant", "variant"),
        (struct(a=BIGINT, b=NOTHING), None, "struct<a: bigint>", "struct<a: bigint>"),
        (struct(a=BIGINT), "struct<A: string>", "struct<a: variant>", "struct<a: bigint>"),
        (Array(Array(DOUBLE)), None, "array<array<string>>", "array<array<double>>"),
        (Array(BIGINT), "array<string>", "array<variant>", "array<bigint>"),
        (struct(a=BIGINT, A=DOUBLE), "map<string, int>", "map<string, variant>", "map<string, double>"),
        (struct(a=BIGINT, b=TEXT), "map<string, int>", "map<string, variant>", "map<string, string>"),
        (Array(struct(a=FLAG)), "array<map<string, boolean>>", "array<map<string, boolean>>", None),
        (struct(a=BIGINT, A=TEXT), None, "struct<a: variant>", "struct<a: string>"),
        (Array(BIGINT), "map<string, int>", "array<bigint>", "array<bigint>"),
        (NOTHING, "int", "void", "void"),
        (Array(struct(a=NOTHING)), None, "void", "void"),
    ],
)
def test_raw_types_keep_all_values_and_types_are_inferred_by_value(
    kind: Type, target: str | None, raw: str, inferred: str | None
) -> None:
    found = column(kind, None if target is None else parse_sql_type(target))
    assert found.raw == (NOTHING if raw == "void" else parse_sql_type(raw))
    assert found.inferred == (NOTHING if raw == "void" else parse_sql_type(inferred or raw))
    assert found.is_known is (target is not None)


def test_names_that_differ_only_by_case_are_one_column_unless_one_has_no_values() -> None:
    kind = struct(Id=NOTHING, b=BIGINT, ID=TEXT, B=DOUBLE, C=NOTHING, c=NOTHING)
    found = json_columns(kind, lambda _: None)
    assert [(each.name, [own.name for own in each.sources]) for each in found] == [
        ("b", ["b", "B"]),
        ("ID", ["ID"]),
        ("C", ["C"]),
    ]


def test_decimals_that_no_double_holds_stay_decimals() -> None:
    kind = struct(a=Array(Decimal(20, 18)), b=Decimal(3, 1), c=DOUBLE)
    found = column(kind)
    assert exact_type(found.raw, found.inferred).ddl == (
        "struct<`a`: array<decimal(20,18)>, `b`: double, `c`: double>"
    )
    assert with_doubles(MapOf(TEXT, found.raw)) == MapOf(TEXT, struct(a=Array(DOUBLE), b=DOUBLE, c=TEXT))


LEAVES = st.sampled_from([BIGINT, DOUBLE, TEXT, FLAG, MIXED, NOTHING]) | st.builds(
    lambda precision, scale: Decimal(precision, min(scale, precision)),
    st.integers(1, 38),
    st.integers(0, 38),
)
KINDS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Array, inner)
        | st.dictionaries(st.text("aAb`:<,> é", min_size=1, max_size=3), inner, max_size=3).map(
            lambda fields: struct(**fields)
        )
    ),
    max_leaves=8,
)
TARGETS = st.none() | st.sampled_from(
    ["int", "string", "varchar(3)", "double", "decimal(20,4)", "variant", "boolean", "date"]
).map(parse_sql_type)
WANTED = st.recursive(
    TARGETS,
    lambda inner: (
        st.builds(Array, inner.filter(bool))
        | st.builds(MapOf, st.just(TEXT), inner.filter(bool))
        | st.dictionaries(st.sampled_from("aAb"), inner.filter(bool), min_size=1).map(
            lambda fields: struct(**fields)
        )
    ),
    max_leaves=4,
)


def keeps(raw: Type, kind: Type) -> bool:
    """Return whether each value of a kind is of a raw type without loss."""
    if raw == MIXED or is_nothing(kind):
        return True
    if isinstance(kind, Struct) and isinstance(raw, MapOf):
        return all(keeps(raw.value, field.type) for field in kind.fields)
    if isinstance(kind, Struct) and isinstance(raw, Struct):
        fields = {field.name.lower(): field.type for field in raw.fields}
        return all(is_nothing(f.type) or keeps(fields[f.name.lower()], f.type) for f in kind.fields)
    if isinstance(kind, Array) and isinstance(raw, Array):
        return keeps(raw.element, kind.element)
    return raw == kind or keeps_numbers(raw, kind)


def keeps_numbers(raw: Type, kind: Type) -> bool:
    if isinstance(raw, Decimal):
        own = Decimal(19, 0) if kind == BIGINT else kind
        assert isinstance(own, Decimal)
        return own.scale <= raw.scale and own.precision - own.scale <= raw.precision - raw.scale
    if isinstance(kind, Decimal):
        return raw == TEXT or (raw == DOUBLE and kind.precision <= 15)
    return raw == TEXT and kind in (BIGINT, DOUBLE)


@given(st.dictionaries(st.text("aAbB`", min_size=1, max_size=2), KINDS, max_size=4), WANTED)
def test_raw_types_lose_nothing_whatever_the_kinds_are(kinds: dict[str, Type], target: Type | None) -> None:
    columns = json_columns(struct(**kinds), lambda _: target)
    assert {each.name.lower() for each in columns} == {name.lower() for name in kinds}
    for each in columns:
        assert all(keeps(each.raw, source.type) for source in each.sources), each
        assert each.is_void == all(map(is_nothing, (source.type for source in each.sources)))
        assert "void" not in each.raw.ddl or each.is_void
        assert "struct<>" not in each.raw.ddl


def spark_text(kind: Type) -> str:
    """Return a kind as Spark writes it."""
    if isinstance(kind, Array):
        return f"ARRAY<{spark_text(kind.element)}>"
    if isinstance(kind, Struct):
        fields = (f"`{f.name.replace('`', '``')}`: {spark_text(f.type)}" for f in kind.fields)
        return f"OBJECT<{', '.join(fields)}>"
    return kind.ddl.upper()


@given(KINDS)
def test_every_kind_is_read_back(kind: Type) -> None:
    assert parse_kind(spark_text(kind)) == kind
