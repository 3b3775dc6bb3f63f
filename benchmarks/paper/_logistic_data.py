"""The Sonar and the Madelon data, as logistic regressions."""

import numpy as np

from .._data import data_folder
from ._logistic_posterior import Regression

POINTS = 10  # rows whose labels are predicted
SCALE = 0.5  # the standard deviation that predictors are brought to
PRIOR, INTERCEPT_PRIOR = 5.0, 20.0  # standard deviations


def sonar() -> Regression:
    """Sixty energies and an intercept; ten rows, spread over the file, are to be classified."""
    text = np.genfromtxt(data_folder("sonar") / "sonar.all-data", delimiter=",", dtype=str)
    energies, metal = text[:, :-1].astype(float), text[:, -1] == "M"
    scaled = SCALE * (energies - energies.mean(axis=0)) / energies.std(axis=0)
    predictors = np.hstack([np.ones((len(scaled), 1)), scaled])
    held_out = np.linspace(0, len(scaled) - 1, POINTS).round().astype(int)
    fitted = np.setdiff1d(np.arange(len(scaled)), held_out)
    prior = np.r_[INTERCEPT_PRIOR, np.full(scaled.shape[1], PRIOR)]
    return Regression(predictors[fitted], metal[fitted].astype(float), prior, predictors[held_out])


def madelon() -> Regression:
    """Five hundred predictors; rows of the validation set, spread over it, are to be classified."""
    path = data_folder("madelon")
    train, valid = (np.loadtxt(path / f"madelon_{part}.data") for part in ("train", "valid"))
    labels = np.loadtxt(path / "madelon_train.labels") > 0
    centre, scale = train.mean(axis=0), train.std(axis=0) / SCALE
    points = valid[np.linspace(0, len(valid) - 1, POINTS).round().astype(int)]
    prior = np.full(train.shape[1], PRIOR)
    return Regression(
        (train - centre) / scale, labels.astype(float), prior, (points - centre) / scale
    )
