"""Errors of Spark's analysis."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from lakewright.errors import Fault, Location, NotInstalled, SpecError
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


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (SpecError.of("no UNION"), "target 'x': no UNION"),
        (SpecError.of("no UNION", subject="target 'x'"), "target 'x': no UNION"),
        (SpecError.of("no key", subject="relation 'x'"), "target 'x': relation 'x': no key"),
        (
            SpecError([Fault("rows of target 'x' are lost", subject="target 'x'")]),
            "rows of target 'x' are lost",
        ),
        (SpecError.of("target 'x' of another name"), "target 'x': target 'x' of another name"),
    ],
)
def test_a_fault_begins_with_its_subject_unless_its_message_has_it(raised: SpecError, message: str) -> None:
    place = Location("module.yml", 3)
    with pytest.raises(SpecError) as caught, located_rejection("target 'x'", lambda: place, "Correct it."):
        raise raised
    (fault,) = caught.value.faults
    assert (fault.subject, fault.message, fault.location) == ("target 'x'", message, place)
    assert fault.as_json()["subject"] == "target 'x'"
