"""What is lost, damaged or foreign in the lake: tables, partitions, logs, and slices without records."""
