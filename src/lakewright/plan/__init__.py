"""What would run, in which order and why. Pure: values in, values out."""
