"""Slices: what bronze holds, what of it is ready, and its processing under the manifest's locks."""
