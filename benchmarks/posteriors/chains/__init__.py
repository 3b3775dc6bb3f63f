"""Estimates from real chains: posteriordb's models in NumPyro, sampled by NUTS, 4 x 250 draws.

`python -m benchmarks.posteriors.chains` checks each model's gradient against the stored scores,
samples what is not in the cache, estimates, and writes `chains.json` and `chains.md`. The draws of a
chain depend on each other, as thinned reference draws do not, and the scores are those that the
sampler computed anyway.
"""
