"""Silver tables examined: what is wrong with their rows, since when, and how it is repaired."""
