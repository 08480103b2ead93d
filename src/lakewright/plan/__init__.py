"""Planning: which steps would run, in which order and why. Pure: no engine, files, clock or network."""
