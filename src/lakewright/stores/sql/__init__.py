"""What the back ends in SQL databases share: one schema and one set of queries, through SQLAlchemy Core."""
