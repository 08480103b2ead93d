"""The `entity` target: its definition, its observation, and its work in each phase."""
