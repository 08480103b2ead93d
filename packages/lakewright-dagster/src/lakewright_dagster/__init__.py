"""Dagster assets, partitions and checks made from a Lakewright project: `definitions.build_definitions`."""
