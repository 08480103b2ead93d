"""The workspace: one instance's definitions, resolved, and the frames built from them."""
