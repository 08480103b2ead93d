"""Names of columns: what cannot be seen in them is shown."""

from __future__ import annotations

import pytest

from lakewright.schema.names import look_alike, shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("id", "'id'"),
        ("id\u00a0", "'id\\u00a0'"),
        ("\u200bid", "'\\u200bid'"),
        (" net price", "' net price'"),
        ("it's", '"it\'s"'),
        ("a\tb\n", "'a\\tb\\n'"),
        ("Größe", "'Größe'"),
        ("\U000e0001x", "'\\U000e0001x'"),
        ("back\\", "'back\\\\'"),
    ],
)
def test_a_name_as_messages_show_it(name: str, expected: str) -> None:
    assert shown(name) == expected


@pytest.mark.parametrize(
    ("name", "present", "expected"),
    [
        ("id", ["name", "id\u00a0"], ("id\u00a0", "invisible")),
        ("id", ["\u200bID"], ("\u200bID", "invisible")),
        ("id", [" id"], (" id", "invisible")),
        ("Größe", ["Gro\u0308ße"], ("Gro\u0308ße", "form")),
        ("netprice", ["net price"], None),
        ("id", ["ID"], None),
    ],
)
def test_names_that_look_alike(name: str, present: list[str], expected: tuple[str, str] | None) -> None:
    assert look_alike(name, present) == expected
