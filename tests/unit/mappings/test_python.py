"""What a mapping of kind `python` says of a function of the project."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from lakewright.mappings.python import no_frame


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pd.DataFrame({"id": [1]}), "a DataFrame of pandas"),
        (pa.table({"id": [1]}), "a Table of pyarrow"),
        (None, "NoneType"),
        ([1], "list"),
    ],
)
def test_what_is_no_frame_of_spark_is_named_with_how_to_make_one(found: object, kind: str) -> None:
    error = no_frame("mapping 'sums'", "add", found)
    assert error.message == f"mapping 'sums': add gave {kind}, not a DataFrame of Spark"
    assert "src.sparkSession.createDataFrame(…)" in (error.remedy or "")
