"""The manifest in Amazon DynamoDB: one table, conditional writes, no scan of it anywhere."""
