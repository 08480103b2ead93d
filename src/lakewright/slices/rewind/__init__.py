"""Rewinds of silver tables: undoing a slice, and building a table again from its slices."""
