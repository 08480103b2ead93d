"""Processing times of slices: what jobs declare for them, and which are late or would be refused."""
