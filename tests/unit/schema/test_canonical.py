"""The canonical text behind hashes and keys, as SQL; its values are tested with Spark."""

from __future__ import annotations

import pytest

from lakewright.schema.canonical import HASH_VERSION, KNOWN_VERSIONS, CanonicalForm
from lakewright.schema.sql import text_sql
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type

STRING, INT, DOUBLE = (Scalar(name) for name in ("string", "int", "double"))
FORM = CanonicalForm(HASH_VERSION, "Europe/Berlin")
FORMS = [CanonicalForm(version, "Europe/Berlin") for version in sorted(KNOWN_VERSIONS)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.version)
def test_order_and_case_of_columns_do_not_count(form: CanonicalForm) -> None:
    one = form.hash_sql([StructField("a", INT), StructField("B", STRING)])
    other = form.hash_sql([StructField("b", STRING), StructField("a", INT)])
    assert one.replace("`B`", "`b`") == other


def test_without_columns_there_is_still_a_hash() -> None:
    assert FORM.hash_sql([]) == "sha2(concat_ws(''), 256)"


def test_names_tell_their_own_end() -> None:
    assert "'.ngröße;'" in FORM.hash_sql([StructField("größe", INT)])
    assert text_sql(r".na\;\\b;") in FORM.hash_sql([StructField("a;\\b", INT)])


def test_columns_without_a_value_add_nothing() -> None:
    nothing = Struct((StructField("x", Scalar("void")), StructField("y", Struct(()))))
    assert FORM.hash_sql([StructField("a", Scalar("void"))]) == FORM.hash_sql([])
    assert "if((false or (false)), 'ra;(', null)" in FORM.hash_sql([StructField("a", nothing)])


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (Scalar("tinyint"), Scalar("bigint"), "23"),
        (INT, Decimal(10, 2), "23"),
        (Scalar("float"), DOUBLE, "23"),
        (Chars(3, is_fixed=True), Scalar("string collate UNICODE_CI"), "23"),
        (Scalar("void"), STRING, "23"),
        (INT, DOUBLE, "3"),
        (Decimal(5, 2), Scalar("float"), "3"),
        (Scalar("timestamp"), Scalar("timestamp_ntz"), "3"),
        (INT, STRING, ""),
        (INT, Scalar("boolean"), ""),
        (Scalar("date"), Scalar("timestamp"), ""),
        (Array(INT), Scalar("variant"), ""),
    ],
)
def test_types_whose_equal_values_hash_alike(one: Type, other: Type, alike: str) -> None:
    found = [form.version for form in FORMS if form.class_of(one) == form.class_of(other)]
    assert "".join(found) == alike


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.version)
def test_text_grows_with_the_depth_of_a_type_not_with_its_power(form: CanonicalForm) -> None:
    def nested(depth: int) -> Type:
        return Array(nested(depth - 1)) if depth else MapOf(STRING, INT)

    sizes = [len(form.hash_sql([StructField("a", nested(depth))])) for depth in (2, 4, 8)]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 20


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.version)
def test_fields_of_a_struct_are_sorted(form: CanonicalForm) -> None:
    def struct(*names: str) -> Type:
        return Struct(tuple(StructField(name, STRING) for name in names))

    hashed = [form.hash_sql([StructField("s", kind)]) for kind in (struct("x", "y"), struct("y", "x"))]
    assert hashed[0] == hashed[1]


def test_a_former_version_stays_as_it_was() -> None:
    """Tables keep their version: other text would be a new version of every row."""
    former = CanonicalForm("2", "Europe/Berlin")
    kinds = {
        "double": "hex(xxhash64(if(cast(`a` as double) = 0D, 0D, cast(`a` as double))))",
        "timestamp_ntz": "if(`a` is not null, 'oa;timestamp_ntz;', null)",
        "interval day to second": "'oa;daytimeinterval;'",
        "interval month": "'oa;yearmonthinterval;'",
        "time(6)": "'oa;time;'",
        "int": "'na;'",
        "variant": "sha2(to_json(`a`), 256)",
    }
    found = {kind: former.hash_sql([StructField("a", Scalar(kind))]) for kind in kinds}
    assert {kind: text for kind, text in kinds.items() if text not in found[kind]} == {}
    assert "is not null, 'aa;['" in former.hash_sql([StructField("a", Array(INT))])
