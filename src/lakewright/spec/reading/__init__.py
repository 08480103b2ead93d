"""Reading: the files of a project as plain values with line numbers."""
