"""One module per command: it parses options, calls one use case and renders the result."""
