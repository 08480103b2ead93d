"""Expressions: their grammar, the names in scope, their functions and their values."""
