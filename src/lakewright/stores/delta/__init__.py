"""The manifest in a Delta table, through the `deltalake` package and without Spark."""
