"""Loading: a project's folder read, merged with profiles and checked as a whole."""
