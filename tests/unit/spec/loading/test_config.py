"""Configuration entries of a project."""

from __future__ import annotations

from lakewright.spec.loading.settings import read_config


def test_configuration_is_sorted_out() -> None:
    found, faults, warnings = read_config(
        {
            "spark.x": "1",
            "flowman.default.target.outputMode": "append",
            "lakewright.default.target.outputMode": "overwrite",
            "flowman.execution.target.forceDirty": "true",
            "flowman.nix": "x",
            "lakewright.nix": "x",
            "hive.x": "y",
        },
        {},
    )
    assert found == {
        "spark.x": "1",
        "lakewright.default.target.outputMode": "overwrite",
        "lakewright.execution.target.forceDirty": "true",
    }
    assert [fault.message for fault in faults] == ["unknown configuration 'lakewright.nix'"]
    assert ["flowman.nix" in warnings[0].message, "hive.x" in warnings[1].message] == [True, True]
