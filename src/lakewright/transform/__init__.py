"""Lazy DataFrame → DataFrame steps of the common pipeline: column names, keys, hashes and casts."""
