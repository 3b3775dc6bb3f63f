"""Several samples with their integrands, as the rows of one system."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..auditing import AuditReport
from ..data import Integrands, IntegrandSpec, Sample, integrands
from ..estimation import AuditMode, CrossFit, audited
from ..solvers import Folds

type Specs = IntegrandSpec | Integrands | Sequence[IntegrandSpec | Integrands]

MOST = 4000  # draws of all tasks together: a matrix of all pairs is factorised


class Tasks(NamedTuple):
    """The draws of all tasks, one task below the other."""

    samples: tuple[Sample, ...]
    wanted: tuple[Integrands, ...]
    reports: tuple[AuditReport | None, ...]

    @property
    def number(self) -> int:
        """How many tasks there are."""
        return len(self.samples)

    @property
    def task(self) -> np.ndarray:
        """The task of every row: (n,)."""
        return np.repeat(np.arange(self.number), [one.size for one in self.samples])

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The draws and scores of every row: (n, dim) each."""
        x, score = ([getattr(one, part) for one in self.samples] for part in ("x", "score"))
        return np.concatenate(x, dtype=np.float64), np.concatenate(score, dtype=np.float64)

    @property
    def f(self) -> np.ndarray:
        """The integrands on every row: (n, k)."""
        flat = [one.values.reshape(-1, one.values.shape[-1]) for one in self.wanted]
        return np.concatenate(flat).astype(np.float64)

    def folds(self) -> list[Folds]:
        """Where the folds of each task start and stop among its own draws."""
        return [CrossFit().boundaries(one.chains, one.length) for one in self.samples]

    def blocks(self) -> list[np.ndarray]:
        """The rows of fold j: those of the j-th fold of every task that has one."""
        starts = np.cumsum([0, *(one.size for one in self.samples[:-1])])
        found: list[list[np.ndarray]] = [[] for _ in range(max(map(len, self.folds())))]
        for start, folds in zip(starts, self.folds(), strict=True):
            for block, (first, last) in zip(found, folds, strict=False):
                block.append(start + np.arange(first, last))
        return [np.concatenate(block) for block in found]


def tasks_of(f: Specs, samples: Sequence[Any], audit: AuditMode = "off") -> Tasks:
    """Evaluate the integrands on every sample and audit it; refuse what cannot be one system."""
    samples = tuple(samples)
    for sample in samples:
        if not isinstance(sample, Sample):
            raise TypeError(f"a {type(sample).__name__} is no sample: give a list of Sample.")
        if sample.weights is not None or sample.space is not None:
            raise ValueError(
                "related tasks need draws of equal weight on all of R^d: use estimate for a sample "
                "with weights or a space."
            )
    if len(samples) < 2 or len({sample.dim for sample in samples}) > 1:
        raise ValueError(
            f"{len(samples)} samples of dimensions {sorted({one.dim for one in samples})}: give two "
            "or more of the same dimension, or use estimate_many."
        )
    size = sum(sample.size for sample in samples)
    if size > MOST:
        raise ValueError(
            f"{size} draws in all, and a matrix of all pairs is too large beyond {MOST}: give fewer "
            "tasks at a time, or use estimate_many, which gains as much where each has many draws."
        )
    wanted = _wanted(f, samples)
    return Tasks(samples, wanted, tuple(audited(sample, audit) for sample in samples))


def _wanted(f: Specs, samples: tuple[Sample, ...]) -> tuple[Integrands, ...]:
    by_task = isinstance(f, list) and not all(isinstance(one, str) for one in f)
    specs: list[Any] = cast(list, f) if by_task else [f] * len(samples)
    if len(specs) != len(samples):
        raise ValueError(
            f"{len(specs)} integrands for {len(samples)} samples: give one for all, or a list with "
            "those of each sample."
        )
    wanted = tuple(integrands(one, sample) for one, sample in zip(specs, samples, strict=True))
    counts = sorted({len(one.names) for one in wanted})
    if len(counts) > 1:
        raise ValueError(f"tasks with {counts} integrands: give as many for every task.")
    return wanted
