"""Airflow 3 operators, a sensor and task groups that run Lakewright."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

__all__ = ["get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """Return what Airflow lists of this provider."""
    return {
        "package-name": "lakewright-airflow",
        "name": "Lakewright",
        "description": "Runs Lakewright's jobs and plans.",
        "versions": [version("lakewright-airflow")],
        "extra-links": ["lakewright_airflow.links.OperatorPageLink"],
    }
