"""The processing manifest: records, items folded from them, and the interface of its back ends. Pure."""
