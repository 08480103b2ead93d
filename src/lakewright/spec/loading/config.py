"""Configuration entries: those of Spark, those of Lakewright, and those that only Flowman knows.

Source: the project files' rules, "Configuration".
"""

from __future__ import annotations

from collections.abc import Mapping

from lakewright.errors import Fault, Location
from lakewright.spec.suggestions import suggestion

__all__ = ["OWN", "SETTINGS", "read_config"]

OWN = "lakewright."
FLOWMAN = "flowman."
SPARK = "spark."

SETTINGS = frozenset(
    (
        "default.relation.migrationPolicy",
        "default.relation.migrationStrategy",
        "default.target.buildPolicy",
        "default.target.outputMode",
        "default.target.parallelism",
        "default.target.rebalance",
        "default.target.verifyPolicy",
        "execution.executor.parallelism",
        "execution.target.forceDirty",
        "metrics.json",
        "metrics.prometheus",
        "spark.enableHive",
    )
)
"""Known keys, without their prefix `lakewright.` or `flowman.`."""


def read_config(
    entries: Mapping[str, str], locations: Mapping[str, Location]
) -> tuple[dict[str, str], tuple[Fault, ...], tuple[Fault, ...]]:
    """Return the effective entries, the faults and the warnings.

    Known keys with the prefix `flowman.` become keys with `lakewright.`; if both exist, `lakewright.` wins.
    Other `flowman.` keys have no effect and give a warning.
    """
    found: dict[str, str] = {}
    faults: list[Fault] = []
    warnings: list[Fault] = []
    for key, value in entries.items():
        location = locations.get(key)
        if key.startswith(FLOWMAN):
            own = key.removeprefix(FLOWMAN)
            if own in SETTINGS:
                found.setdefault(OWN + own, value)
            else:
                warnings.append(
                    Fault(f"the configuration {key!r} has no effect", location, _near(own, FLOWMAN))
                )
        elif key.startswith(OWN) and key.removeprefix(OWN) not in SETTINGS:
            faults.append(
                Fault(f"unknown configuration {key!r}", location, _near(key.removeprefix(OWN), OWN))
            )
        elif key.startswith((OWN, SPARK)):
            found[key] = value
        else:
            warnings.append(
                Fault(
                    f"the configuration {key!r} has no effect: keys start with spark. or lakewright.",
                    location,
                )
            )
    return found, tuple(faults), tuple(warnings)


def _near(name: str, prefix: str) -> str | None:
    return suggestion(prefix + name, [prefix + known for known in SETTINGS])
