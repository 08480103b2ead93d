"""Definitions: named entries of a section, kept as text until they become objects of their kind."""
