"""What users can ask for, one module each: the command line and the Python API call these functions."""
