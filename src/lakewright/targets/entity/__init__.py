"""The `entity` target: what it declares, what it observes, and what it does in each phase."""
