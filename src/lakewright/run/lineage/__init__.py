"""OpenLineage events of a run: what its targets read and wrote, sent to a collector in the background."""
