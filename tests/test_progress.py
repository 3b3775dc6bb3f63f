"""A sign of life on a terminal, after a while; not a byte anywhere else."""

import io
import time

import numpy as np
import pytest
from rich.console import Console

import steinax as sx
from steinax import _show
from steinax._show import progress


def _terminal() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=80), text


@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(_show, "PATIENCE", 0.05)


def test_silent_off_a_terminal(impatient) -> None:
    text = io.StringIO()
    with progress("working", total=2, console=Console(file=text)) as bar:
        bar.advance()
        time.sleep(0.2)
    assert not text.getvalue()


def test_an_estimate_writes_nothing_off_a_terminal(impatient, capfd) -> None:
    x = np.random.default_rng(0).normal(size=(2, 50, 2))
    sx.estimate("x", sx.Sample(x, -x))
    assert tuple(capfd.readouterr()) == ("", "")


def test_shown_on_a_terminal_after_the_patience(impatient) -> None:
    console, text = _terminal()
    with progress("fitting folds", total=4, console=console) as bar:
        for _ in range(4):
            bar.advance()
            time.sleep(0.1)
    assert "fitting folds" in text.getvalue()


def test_nothing_is_shown_before_the_patience() -> None:
    console, text = _terminal()
    with progress("quick", console=console) as bar:
        bar.advance()
    assert "quick" not in text.getvalue()


def test_an_error_passes_through_and_stops_the_bar(impatient) -> None:
    console, text = _terminal()
    with pytest.raises(RuntimeError, match="inside"), progress("failing", console=console):
        time.sleep(0.2)
        raise RuntimeError("inside")
    length = len(text.getvalue())
    time.sleep(0.3)
    assert len(text.getvalue()) == length


def test_a_bar_inside_a_bar(impatient) -> None:
    """An estimate shows one, and each of its folds may show another."""
    console, _ = _terminal()
    with progress("outer", console=console):
        time.sleep(0.1)
        with progress("inner", total=1, console=console) as bar:
            time.sleep(0.1)
            bar.advance()
