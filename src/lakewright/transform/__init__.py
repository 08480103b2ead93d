"""Lazy DataFrame → DataFrame steps of the common pipeline: keys, hashes, casts, names."""
