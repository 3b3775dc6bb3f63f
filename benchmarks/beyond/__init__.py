"""What goes past the paper, measured: weights, evidence, sparse fits, spaces, thinning and more.

`python -m benchmarks.beyond NAME` prints a Markdown table, or JSON with `--json`; `--out FOLDER` writes both.
"""
