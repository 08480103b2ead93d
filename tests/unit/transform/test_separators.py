"""A slice of one column whose name holds a separator is told to have another separator than declared."""

from __future__ import annotations

import pytest

from lakewright.errors import SchemaDriftError
from lakewright.transform.required_columns import check_columns


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["oid;day;cust;amount"], ";"),
        (["oid\tday"], "tab"),
        (['"oid"|"a;b"'], "|"),
        (["oid;amount", "_lakewright_corrupt"], ";"),
        (["x", "y"], None),
        (["day", "oid;x"], None),
    ],
)
def test_the_remedy_names_the_separator_if_no_declared_column_was_found(
    names: list[str], told: str | None
) -> None:
    with pytest.raises(SchemaDriftError) as raised:
        check_columns(names, ["OID", "day"])
    remedy = str(raised.value.remedy)
    assert remedy.endswith("orrect the slice, or remove the column from the entity's `columns`.")
    with pytest.raises(SchemaDriftError) as raised:
        check_columns(names, ["OID", "day"], ["oid"])
    assert "declare the column with `optional: true` if slices may lack it; or" in str(raised.value.remedy)
    assert ("separator" in remedy) == (told is not None)
    if told is not None:
        assert f'declare it: `format: {{kind: csv, separator: "{told}"}}`.' in remedy
