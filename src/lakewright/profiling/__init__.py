"""What files show of themselves: their entities, formats, types, keys and strategies, found without a JVM."""
