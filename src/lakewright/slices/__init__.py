"""Slices: what the bronze folder holds, what of it is ready, and its processing under the manifest's locks."""
