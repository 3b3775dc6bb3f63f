"""The accessor of DataTrees."""

import numpy as np

import steinax as sx
import steinax.accessor
from steinax.summarising import summary
from summarising.models import banana


def test_a_tree_with_scores_has_all_of_steinax() -> None:
    sample = banana(0)
    tree = sx.to_arviz(sample)
    assert tree.steinax.audit().passed
    assert np.array_equal(tree.steinax.sample().draws, sample.draws)
    assert tree.steinax.estimate("tau", sx.Polynomial(2)).names == ("tau",)
    assert tree.steinax.weigh(sx.Polynomial(2)).weights.shape == (4, 500)
    assert (tree.steinax.summary("tau") == summary(sample, "tau")).all(axis=None)
