"""The manifest in a Delta table, by the `deltalake` package: for those who have only object storage."""
