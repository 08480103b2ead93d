"""Loading: a project's folder is read, merged with its profiles and checked as a whole."""
