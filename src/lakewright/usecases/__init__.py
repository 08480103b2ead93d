"""Use cases, one module each; the command line and the Python API call these functions."""
