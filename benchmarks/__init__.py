"""Benchmarks: ratios measured side by side in one run. `python -m benchmarks --help` tells how."""
