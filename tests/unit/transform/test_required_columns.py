"""What is told of a slice without a declared column."""

from __future__ import annotations

import pytest

from lakewright.errors import SchemaDriftError
from lakewright.transform.required_columns import check_columns


def test_a_path_that_a_struct_lacks_is_told_with_the_fields_that_it_has() -> None:
    """Only columns were listed, so that the right spelling was not among them."""
    fields = {"address": ("address.city", "address.zip"), "lines": ("lines.n",)}
    with pytest.raises(SchemaDriftError) as caught:
        check_columns(["id", "address"], ["id", "Address.cty", "name"], (), fields)
    assert caught.value.message == (
        "the slice lacks the configured columns 'Address.cty', 'name'; it has 'id', 'address', with "
        "the fields 'address.city', 'address.zip'"
    )
