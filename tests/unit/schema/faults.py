"""Faults as Spark raises them."""

from __future__ import annotations

import json

from lakewright.schema.fault import Fault

MARK = "\u2063"


def raised(fault: Fault) -> str:
    """Return the text of an error of Spark that a fault has raised."""
    text = json.dumps(fault.as_json(), ensure_ascii=False)
    return f"[USER_RAISED_EXCEPTION] {MARK}{text}{MARK} SQLSTATE: P0001\n\tat org.apache.spark"
