"""The project's documentation as pages: what was found, as HTML, Markdown or JSON. Knows no lake."""
