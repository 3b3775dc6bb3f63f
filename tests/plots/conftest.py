"""Pictures are drawn to no screen, closed after each test, and leave matplotlib as it was."""

from collections.abc import Iterator

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    settings = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == settings, "no setting is changed"
    plt.close("all")
