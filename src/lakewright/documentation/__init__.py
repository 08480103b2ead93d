"""The project's documentation: gathered from definitions, the lake and the history, and written as pages."""
