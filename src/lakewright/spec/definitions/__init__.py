"""Definitions: named entries of sections, their kinds, their templates, and the faults in them."""
