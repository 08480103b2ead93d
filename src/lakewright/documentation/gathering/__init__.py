"""What the documentation shows, read from the definitions, the lake, the manifest and the run history."""
