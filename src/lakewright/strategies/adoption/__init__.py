"""Adoption of tables that other tools made: their columns, their rows, the checks of rows, and the commit."""
