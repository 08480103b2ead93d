"""Targets that are out of date: what reads a table, what was built before it changed, what to empty first."""
