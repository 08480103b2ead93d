"""Validate the parts of a project for `validate_project`: expressions, SQL, columns, records, mappings."""
