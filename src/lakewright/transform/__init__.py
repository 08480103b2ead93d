"""Lazy DataFrame → DataFrame steps of the common pipeline: keys, hashes, casts, names. No action, read or session."""
