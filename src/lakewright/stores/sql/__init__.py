"""Back ends in SQL databases: one schema and one set of queries, through SQLAlchemy Core."""
