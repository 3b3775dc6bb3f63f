"""How time and memory grow: draws from disk, many integrands, many posteriors, several processes.

`python -m benchmarks.scale streaming|farm|integrands|devices` prints a Markdown table, or JSON with
`--json`.
"""
