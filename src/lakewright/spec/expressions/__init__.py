"""Expressions: their grammar, the names in scope, and the functions and values they compute with."""
