"""Full, Merge and Historic: a prepared slice in, one Delta commit and true metrics out."""
