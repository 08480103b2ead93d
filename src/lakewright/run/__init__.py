"""Running jobs: observe the lake, execute a plan, record the results."""
