"""The manifest in PostgreSQL, for several machines."""
