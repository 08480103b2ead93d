"""Slices: discovery in bronze, which of them are ready, and processing under the manifest's locks."""
