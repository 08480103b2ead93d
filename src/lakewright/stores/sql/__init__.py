"""Code shared by the back ends in SQL databases: one schema and one set of queries, by SQLAlchemy Core."""
