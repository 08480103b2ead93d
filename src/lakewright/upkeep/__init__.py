"""Work on a whole manifest: checking it, exporting and importing it, following a lake that moved."""
