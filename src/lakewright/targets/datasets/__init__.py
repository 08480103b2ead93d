"""Datasets: rows that targets copy, compare and show; one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "const": "lakewright.targets.datasets.values:ValuesDataset",
    "file": "lakewright.targets.datasets.file:FileDataset",
    "mapping": "lakewright.targets.datasets.mapping:MappingDataset",
    "relation": "lakewright.targets.datasets.relation:RelationDataset",
    "values": "lakewright.targets.datasets.values:ValuesDataset",
}
"""Class of each kind, imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
