"""The estimate as every replicate asks for it."""

import steinax as sx


def estimate(f: dict, sample: sx.Sample, family=None, audit: str = "off") -> sx.Estimate:
    """A verdict of the audit must not choose among the replicates: it is measured elsewhere."""
    return sx.estimate(f, sample, family, audit=audit)
