"""A6: the format of slices, and what can be set for text files."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakewright.spec.loading.entity_checks import _not_overridden
from lakewright.spec.models.entity_settings import EntitySettings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"format": {"kind": "json", "separator": ";"}}, "separator: json files have no such setting"),
        (
            {"format": {"kind": "parquet", "encoding": "utf-8"}},
            "encoding: parquet files have no such setting",
        ),
        ({"format": {"kind": "csv", "encoding": "latin-99"}}, "there is no encoding 'latin-99'"),
        ({"format": {"kind": "csv", "separator": '"'}}, "separator and quote are the same"),
        ({"format": {"kind": "csv", "seperator": ";"}}, "unknown key 'seperator'"),
        ({"format": "xls"}, "'parquet', 'csv', 'json', 'avro' or 'orc'"),
        ({"format": "csv", "bronze_format": "json"}, "the format is csv, but bronze_format is json"),
    ],
)
def test_what_no_file_has_is_an_error(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as raised:
        EntitySettings.model_validate(settings)
    assert told in str(raised.value)


def test_an_entity_overrides_the_format_of_its_connection_however_it_is_written() -> None:
    assert _not_overridden({"bronze_format": "csv", "x": 1}, {"format": "json"}) == {"x": 1}
    assert _not_overridden({"format": "csv"}, {"bronze_format": "json"}) == {}
    kept = {"bronze_format": "csv"}
    assert _not_overridden(kept, {"format": {"separator": ";"}}) == kept
