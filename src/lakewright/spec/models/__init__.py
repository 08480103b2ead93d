"""What users declare: one model for each kind of declaration."""
