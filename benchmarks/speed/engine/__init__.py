"""The engine against the bare operations that it is made of: one ratio for each piece.

Each piece is a test of pytest-benchmark: `ratio(ours, bare, at_most)` takes CPU times of both in turns.
`python -m benchmarks.speed engine` runs them all in a process that is pinned to one core, and prints one
table; `--only gram` runs those whose names contain a word.
"""
