"""What people look for in an estimate, and where it is."""

_ELSEWHERE = {
    "mean": "the estimates are .value",
    "estimate": "the estimates are .value",
    "values": "the estimates are .value",
    "se": "the standard errors are .mcse",
    "std": "the standard errors are .mcse; summary(sample) has posterior standard deviations",
    "sd": "the standard errors are .mcse; summary(sample) has posterior standard deviations",
    "stderr": "the standard errors are .mcse",
    "error": "the standard errors are .mcse",
    "var": "the squares of .mcse are variances, and .covariance is of all",
    "ci": "intervals are .interval(0.95)",
    "hdi": "intervals of an expectation are .interval(0.95); summary(sample) has those of a posterior",
    "plain": "the plain averages are .plain_value, and their errors .plain_mcse",
    "quantile": "quantiles of the posterior are weigh(sample).quantile(name, 0.5)",
    "median": "quantiles of the posterior are weigh(sample).quantile(name, 0.5)",
    "to_dataframe": "labelled arrays are .to_dataset(); summary(sample) gives a data frame",
    "summary": "print the estimate; summary(sample) has every parameter",
    "plot": "plot_estimate(estimate) draws it",
    "r_hat": "R-hat is .rhat",
}


def no_attribute(name: str) -> str:
    """That an estimate has no attribute of a name, and which one may be meant.

    >>> no_attribute("mean")
    "'Estimate' object has no attribute 'mean': the estimates are .value."
    """
    hint = f": {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""
    return f"'Estimate' object has no attribute {name!r}{hint}"
