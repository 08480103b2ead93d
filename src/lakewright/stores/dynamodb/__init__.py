"""The manifest in a table of Amazon DynamoDB."""
