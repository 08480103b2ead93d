"""`processing-strategies.md`, "Common Processing Pipeline": rename and normalize column names."""

from __future__ import annotations

import pytest

from lakewright.errors import SchemaDriftError
from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.storable_columns import check_names, final_names
from lakewright.transform.system_columns import SystemColumns

SYSTEM = SystemColumns("dlf_", "crm.people")


@pytest.mark.parametrize(
    ("names", "renames", "expected"),
    [
        (["id", "v"], {}, {"id": "id", "v": "v"}),
        (
            ["net price", "a,b;c{d}e(f)g=h+i-j.k\tl\nm"],
            {},
            {"net price": "netprice", "a,b;c{d}e(f)g=h+i-j.k\tl\nm": "abcdefghijklm"},
        ),
        (["ID"], {"id": "the id"}, {"ID": "theid"}),
        (["größe 😀", "`x`"], {}, {"größe 😀": "größe😀", "`x`": "`x`"}),
    ],
)
def test_names_lose_what_a_table_cannot_hold(
    names: list[str], renames: dict[str, str], expected: dict[str, str]
) -> None:
    assert final_names(names, renames, SYSTEM.all) == expected


@pytest.mark.parametrize(
    ("names", "renames", "told"),
    [
        (["net price", "netprice"], {}, ["net price", "netprice"]),
        (["a", "B"], {"a": "b"}, ["'a'", "'B'"]),
        (["v"], {"v": "dlf_ValidFrom"}, ["dlf_validfrom"]),
        (["v"], {"v": "pk_crm people"}, ["pk_crmpeople"]),
        ([". ."], {}, [". ."]),
    ],
)
def test_names_that_clash_are_refused_with_both(
    names: list[str], renames: dict[str, str], told: list[str]
) -> None:
    with pytest.raises(SchemaDriftError) as raised:
        final_names(names, renames, SYSTEM.all)
    assert all(part in raised.value.message for part in told)


@pytest.mark.parametrize("names", [["id", "dlf_sourcehash"], ["_change_type"], ["v", "V"]])
def test_a_slice_may_not_bring_system_columns_or_doubles(names: list[str]) -> None:
    with pytest.raises(SchemaDriftError):
        check_names(names, SYSTEM.reserved)


def test_a_slice_may_bring_its_own_flag_and_key() -> None:
    check_names(["id", "dlf_deleted", SYSTEM.key], SYSTEM.reserved)


def test_system_columns_carry_the_prefix_but_for_the_key() -> None:
    system = SystemColumns("x_", "people")
    assert (system.hash, system.deleted, system.key) == ("x_SourceHash", "x_deleted", "PK_people")
    assert SYSTEM.key == "PK_crmpeople"


@pytest.mark.parametrize("text", ["", "it's", "a\\'b", "\\", "\n", "${env:HOME}"])
def test_texts_are_quoted(text: str) -> None:
    quoted = text_sql(text)
    assert quoted[0] == quoted[-1] == "'"
    assert quoted[1:-1].replace("\\'", "'").replace("\\\\", "\\") == text
    assert name_sql("a`b") == "`a``b`"
