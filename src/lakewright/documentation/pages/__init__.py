"""The documentation as HTML, Markdown or JSON, made from a `Document` alone."""
