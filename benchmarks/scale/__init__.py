"""How time and memory grow: draws from disk, many integrands, many posteriors, several processes.

`python -m benchmarks.scale streaming|farm|integrands|devices|dimensions` prints a Markdown table, or
JSON with `--json`; `--out docs/benchmarks` writes both, and `python -m benchmarks.scale picture` draws how
times grow from what was written there.
"""
