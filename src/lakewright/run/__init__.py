"""Running: observe the lake, execute a plan, record what happened."""
