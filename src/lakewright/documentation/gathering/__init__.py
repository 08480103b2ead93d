"""The content of the documentation, read from the definitions, the lake, the manifest and the run history."""
