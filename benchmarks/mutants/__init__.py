"""Broken copies of steinax, each of which a fast test must notice: `python -m benchmarks.mutants`."""
