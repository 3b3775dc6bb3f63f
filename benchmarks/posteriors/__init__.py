"""What `steinax.estimate(f, sample)`, with no options, gains on the 22 posteriors of posteriordb.

`python -m benchmarks.posteriors` runs it on blocks of 100, 200 and 1,000 of the 10,000 reference draws
of each posterior, for the mean of every parameter and of its square, and writes `posteriors.json`,
`posteriors.md` and two pictures. Estimates are kept in a folder as they are made, so that a run
that was stopped goes on where it was; those of another version of the source are made anew.
"""
