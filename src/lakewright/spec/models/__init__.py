"""Models: what users declare in project files, one pydantic model for each."""
