"""Datasets: the rows that targets copy, compare and print; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "const": "lakewright.targets.datasets.values:ValuesDataset",
    "file": "lakewright.targets.datasets.file:FileDataset",
    "mapping": "lakewright.targets.datasets.mapping:MappingDataset",
    "relation": "lakewright.targets.datasets.relation:RelationDataset",
    "values": "lakewright.targets.datasets.values:ValuesDataset",
}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman that are not supported, with what to use instead."""
