"""Errors of Spark's analysis."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from lakewright.errors import NotInstalled, SpecError
from lakewright.lake.spark_errors import located_rejection


def test_a_format_without_its_package_is_no_fault_of_the_target() -> None:
    with (
        pytest.raises(NotInstalled, match="this Spark can't read or write avro files") as caught,
        located_rejection("target 'x'", lambda: None, "Correct the target."),
    ):
        raise AnalysisException(
            "Failed to find data source: avro. Avro is built-in but external data source",
            errorClass="_LEGACY_ERROR_TEMP_1139",
            messageParameters={"provider": "avro"},
        )
    assert "Add org.apache.spark:spark-avro_2.13:4.2.0 to spark.jars.packages" in str(caught.value.remedy)


def test_what_the_analysis_rejects_is_a_fault_of_the_declaration() -> None:
    with (
        pytest.raises(SpecError, match="target 'x': Spark rejects it: no column idd"),
        located_rejection("target 'x'", lambda: None, "Correct the target."),
    ):
        raise AnalysisException("no column idd. SQLSTATE: 42703")
