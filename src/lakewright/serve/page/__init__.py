"""The operator's page: rendered here, readable without JavaScript, kept up to date with it."""
