"""Lineage: which items read which, and which columns each column is computed from."""
