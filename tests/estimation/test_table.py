"""An estimate as it is printed."""

import numpy as np

import steinax as sx


def test_labels_in_brackets_are_printed_and_not_taken_for_styles():
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    sample = sx.Sample(x, -x, names=["start[hare]", "start[bold]"])
    printed = repr(sx.estimate(["start[hare]", "start[bold]"], sample, sx.Polynomial(1)))
    assert "start[hare]" in printed
    assert "start[bold]" in printed
