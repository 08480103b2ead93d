"""Lakewright builds and keeps a data lake that a project declares in YAML and JSON."""

__version__ = "0.1.0"
