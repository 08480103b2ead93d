"""The project's documentation.

`gathering` collects a `Document` from the definitions, the lake and the run history, with the results of
`checks`; `lineage` connects its items and columns; `pages` turns it into HTML, Markdown or JSON.
"""
