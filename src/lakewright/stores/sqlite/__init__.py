"""The manifest in a SQLite file: the default back end."""
