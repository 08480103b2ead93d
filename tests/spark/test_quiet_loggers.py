"""Of what Hive's metastore logs, only what nobody else tells reaches the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HANDLER = "org.apache.hadoop.hive.metastore.HiveAlterHandler"


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ("Failed to alter table shop.sales", "DENY"),
        ("Failed to restore data from /a to /b in alter table failure. Manual restore is needed.", "NEUTRAL"),
    ],
)
def test_an_alteration_that_spark_makes_in_another_way_is_not_told(
    spark: SparkSession, message: str, result: str
) -> None:
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    configured = log4j.LogManager.getContext(False).getConfiguration().getLoggerConfig(HANDLER)
    assert configured.getName() == HANDLER
    event = log4j.core.impl.Log4jLogEvent.newBuilder()
    event = event.setLoggerName(HANDLER).setLevel(log4j.Level.ERROR)
    event = event.setMessage(log4j.message.SimpleMessage(message)).build()
    assert str(configured.getFilter().filter(event)) == result
