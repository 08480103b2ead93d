"""The workspace of a job's instance: resolved definitions, and the frames built from them."""
