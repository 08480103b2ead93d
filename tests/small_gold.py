"""Definitions of what is built from the table of `people`."""

from __future__ import annotations

from typing import Any

SILVER = {"kind": "relation", "relation": {"kind": "entity", "entity": "people"}}


def delta(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "delta", "location": f"${{project.basedir}}/lake/gold/{name}", **more}


def ages(query: str = "select age, count(*) as n from people group by age", **more: Any) -> dict[str, Any]:
    """Return the definitions of a gold table that counts the people of an age."""
    return {
        "mappings": {"people": SILVER, "counted": {"kind": "sql", "sql": query}},
        "targets": {"ages": {"kind": "relation", "mapping": "counted", "relation": delta("ages"), **more}},
    }


def by_day(
    query: str = "select age, '${day}' as day from people where age < 100", **more: Any
) -> dict[str, Any]:
    """Return the definitions of a gold table with a partition for each day."""
    return {
        "mappings": {"people": SILVER, "of_day": {"kind": "sql", "sql": query}},
        "targets": {
            "days": {
                "kind": "relation",
                "mapping": "of_day",
                "relation": delta("days", partitions=[{"name": "day", "type": "string"}]),
                "partition": {"day": "${day}"},
                **more,
            }
        },
    }
