"""Failed runs: which still need a person, what others have done of them, and how to resume them."""
