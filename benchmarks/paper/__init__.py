"""Every experiment of the paper, on the public API: `python -m benchmarks.paper NAME` or `--all`.

The paper is Si, Oates, Duncan, Carin and Briol, Scalable Control Variates for Monte Carlo Methods via
Stochastic Optimization. An experiment is a module with these functions:

- `prepare(quick)`, if there is one: what is done once, before all else, such as running a sampler;
- `cells(quick)`: what is measured, each cell a dict of settings, its method among them;
- `measure(cell, repetition)`: one repetition of a cell, a `Result`;
- `report(rows, folder)`: a Markdown page and pictures, and the claims they bear out, a `Report`.
"""
