"""One module a command: its options, and the call of the use case behind it."""
