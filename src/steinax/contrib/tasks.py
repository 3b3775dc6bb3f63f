"""Tasks: several samples with their integrands, stacked as the rows of one system."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..auditing import AuditMode, AuditReport, audited
from ..data import Integrands, IntegrandSpec, Sample, integrands
from ..estimation import CrossFit
from ..solvers import Folds

type Specs = IntegrandSpec | Integrands | Sequence[IntegrandSpec | Integrands]

MOST = 4000  # draws of all tasks together, because a matrix of all pairs is factorised


class Tasks(NamedTuple):
    """The samples, integrands and audit reports of all tasks, stacked by rows."""

    samples: tuple[Sample, ...]
    wanted: tuple[Integrands, ...]
    reports: tuple[AuditReport | None, ...]

    @property
    def number(self) -> int:
        """The number of tasks."""
        return len(self.samples)

    @property
    def task(self) -> np.ndarray:
        """The task of every row: (n,)."""
        return np.repeat(np.arange(self.number), [sample.size for sample in self.samples])

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The draws and scores of every row: (n, dim) each."""
        x, score = ([getattr(sample, name) for sample in self.samples] for name in ("x", "score"))
        return np.concatenate(x, dtype=np.float64), np.concatenate(score, dtype=np.float64)

    @property
    def f(self) -> np.ndarray:
        """The integrands on every row: (n, k)."""
        flat = [task.values.reshape(-1, task.values.shape[-1]) for task in self.wanted]
        return np.concatenate(flat).astype(np.float64)

    def folds(self) -> list[Folds]:
        """Return where the folds of each task start and stop among its draws."""
        return [CrossFit().boundaries(sample.chains, sample.length) for sample in self.samples]

    def blocks(self) -> list[np.ndarray]:
        """Return the rows of each fold j: those of the j-th fold of every task that has one."""
        starts = np.cumsum([0, *(sample.size for sample in self.samples[:-1])])
        blocks: list[list[np.ndarray]] = [[] for _ in range(max(map(len, self.folds())))]
        for start, folds in zip(starts, self.folds(), strict=True):
            for block, (first, last) in zip(blocks, folds, strict=False):
                block.append(start + np.arange(first, last))
        return [np.concatenate(block) for block in blocks]


def tasks_of(f: Specs, samples: Sequence[Any], audit: AuditMode = "off") -> Tasks:
    """Evaluate the integrands on every sample and audit it, after checking that samples can be stacked."""
    samples = tuple(samples)
    for sample in samples:
        if not isinstance(sample, Sample):
            raise TypeError(f"a {type(sample).__name__} is not a Sample: give a list of Sample.")
        if sample.weights is not None or sample.space is not None:
            raise ValueError(
                "related tasks need draws of equal weight on all of R^d: use estimate for a sample "
                "with weights or a space."
            )
    if len(samples) < 2 or len({sample.dim for sample in samples}) > 1:
        raise ValueError(
            f"{len(samples)} samples of dimensions {sorted({sample.dim for sample in samples})}: give two "
            "or more of the same dimension, or use estimate_many."
        )
    size = sum(sample.size for sample in samples)
    if size > MOST:
        raise ValueError(
            f"{size} draws in total, and a matrix of all pairs is too large beyond {MOST}: give fewer "
            "tasks at a time, or use estimate_many, which gains as much where each has many draws."
        )
    wanted = _wanted(f, samples)
    return Tasks(samples, wanted, tuple(audited(sample, audit) for sample in samples))


def _wanted(f: Specs, samples: tuple[Sample, ...]) -> tuple[Integrands, ...]:
    """Evaluate the integrands on every sample, and check that all tasks have equally many."""
    by_task = isinstance(f, list) and not all(isinstance(spec, str) for spec in f)
    specs: list[Any] = cast(list, f) if by_task else [f] * len(samples)
    if len(specs) != len(samples):
        raise ValueError(
            f"{len(specs)} integrands for {len(samples)} samples: give one for all, or a list with "
            "those of each sample."
        )
    wanted = tuple(integrands(spec, sample) for spec, sample in zip(specs, samples, strict=True))
    counts = sorted({len(task.names) for task in wanted})
    if len(counts) > 1:
        raise ValueError(f"tasks with {counts} integrands: give the same number for every task.")
    return wanted
