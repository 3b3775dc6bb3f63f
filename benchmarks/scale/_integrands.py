"""One estimate of integrands that lie on disk: one process on one core."""

import time

import jax

import steinax as sx

from .._pinned import peak_megabytes
from ..speed._problems import skewed_sample

FAMILIES = {
    "Polynomial(2) + KernelTranslates()": sx.Polynomial(2) + sx.KernelTranslates(),
    "Polynomial(2)": sx.Polynomial(2),
    "chosen": None,
}
MEMORY = 1e9  # bytes, the budget on up to 2,000 draws
DRAWS = 2000
AGAIN = 10_000  # integrands up to which a second run leaves compilation out of the time


def measure(family: str, n: int, dim: int, count: int, path: str) -> list[dict]:
    """CPU seconds, and memory beside the plan.

    Compilation is in the time of 100,000 integrands only, where it is a small part of it. Its memory
    is in the plan and in the peak: programs kept from another run, which need less, are not used.
    """
    import zarr

    jax.config.update("jax_enable_compilation_cache", False)
    sample, _ = skewed_sample(n, dim)
    array = {"f": zarr.open_array(path, mode="r")}
    made, memory = FAMILIES[family], MEMORY * max(n / DRAWS, 1.0) ** 2
    before = peak_megabytes()
    plan = sx.estimation.memory_plan(array, sample, made, memory=memory)
    seconds = []
    for _ in range(2 if count <= AGAIN else 1):
        begin = time.process_time()
        sx.estimate(array, sample, made, memory=memory)
        seconds.append(time.process_time() - begin)
    peak = peak_megabytes() - before
    row = {"family": family, "n": n, "d": dim, "k": count, "blocks": plan.blocks}
    figures = {"CPU s": min(seconds), "MB": peak, "predicted MB": plan.total / 1e6}
    return [row | figures | {"ratio": 1e6 * peak / plan.total}]
