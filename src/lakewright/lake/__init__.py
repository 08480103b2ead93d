"""The lake: its session, files, Delta tables and their commits."""
