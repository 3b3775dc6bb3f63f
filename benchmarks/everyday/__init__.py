"""What users run every day: eight models by NUTS, from 4 x 50 to 4 x 5,000 draws.

`python -m benchmarks.everyday COMMAND` samples what is not in the folder `--cache`, and measures:
`errors`, the reported and the true error of every mean against the number of draws, with a picture;
`seconds`, the CPU time of `summary` in a fresh process and of the command line; `runs`, independent runs
against each other; `large`, 100,000 draws; `predictive`, new data; `weights`, quantiles and probabilities.
"""
