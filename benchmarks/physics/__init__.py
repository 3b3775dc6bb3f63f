"""Simulations of physics: each module is a command that writes a page of docs/benchmarks."""
