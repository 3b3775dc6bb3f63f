"""How fast the solvers are, against the bare engine and against the published code.

`python -m benchmarks.speed stochastic|epoch|dual|ratios|honesty|engine|auto|costs|gathering|cold` prints a
Markdown table, or JSON with `--json`. Every measurement runs in a process of its own, on one core
and one thread, and counts CPU seconds; what is compared is measured in turns in the same run, and the
best of several rounds is taken, so that other work on the machine matters little.
"""
