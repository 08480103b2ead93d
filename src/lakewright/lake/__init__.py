"""Spark and Delta: where Java and the jars come from, the session, tables and commits."""
