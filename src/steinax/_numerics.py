"""Triangular factors of NumPy and jax arrays, the floating-point precision of jax, and threads of BLAS."""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import DTypeLike
from threadpoolctl import threadpool_limits

from ._types import AnyArray, PyTree

TINY = 8 * float(np.finfo(np.float64).eps)
RAISED = 1000 * TINY  # if that is too little


def namespace(*arrays: object) -> Any:
    """Return the array namespace of the first array that is not NumPy's, or NumPy itself.

    >>> namespace(np.zeros(3), None) is np
    True
    """
    for array in arrays:
        if not isinstance(array, np.ndarray) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()  # type: ignore[attr-defined]
    return np


def cholesky(matrix: AnyArray) -> AnyArray:
    """Compute the lower Cholesky factor of a symmetric matrix, or of a stack of them.

    A matrix that is not positive definite gives NaN, as in jax, without affecting the others of its stack.

    >>> cholesky(np.array([[[4.0]], [[-1.0]]])).ravel().tolist()
    [2.0, nan]
    """
    if not isinstance(matrix, np.ndarray):
        return namespace(matrix).linalg.cholesky(matrix)
    if matrix.ndim == 2 and len(matrix) > 64:
        return _large_cholesky(matrix)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.full_like(matrix, np.nan)
        return np.stack([cholesky(block) for block in matrix])


def _large_cholesky(matrix: np.ndarray) -> np.ndarray:
    """Compute a large Cholesky factor by LAPACK directly, without copying to column-major order."""
    from scipy.linalg import get_lapack_funcs

    potrf = get_lapack_funcs(["potrf"], (matrix,))[0]
    factor, info = potrf(matrix.T, lower=1, clean=1)  # the matrix is its own transpose
    return factor if info == 0 else np.full_like(matrix, np.nan)


def solve_triangular(factor: AnyArray, right: AnyArray, transposed: bool = False) -> AnyArray:
    r"""Compute $L^{-1} b$ or $L^{-\top} b$ for a lower triangular factor $L$, or for a stack of them.

    >>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(factor, np.ndarray):
        import jax

        trans = 1 if transposed else 0
        return jax.scipy.linalg.solve_triangular(factor, right, lower=True, trans=trans)
    if factor.ndim > 2:
        inverse = np.linalg.inv(factor)
        return (inverse.mT if transposed else inverse) @ right
    from scipy.linalg import get_blas_funcs

    right = np.asarray(right)
    trsm = get_blas_funcs(["trsm"], (factor, right))[0]
    if factor.flags.f_contiguous:
        return trsm(1.0, factor, right, lower=1, trans_a=int(transposed))
    return trsm(1.0, factor.T, right, lower=0, trans_a=int(not transposed))


def inverse_triangular(factor: AnyArray) -> AnyArray:
    """Invert a lower triangular factor, or each factor of a stack.

    >>> inverse_triangular(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    xp = namespace(factor)
    if xp is not np:
        eye = xp.eye(factor.shape[-1], dtype=factor.dtype)
        return solve_triangular(factor, xp.broadcast_to(eye, factor.shape))
    if factor.ndim > 2 or not np.isfinite(factor[-1, -1]):
        return np.linalg.inv(factor)
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(["trtri"], (factor,))[0](factor, lower=1)[0]


def whitening(gram: AnyArray) -> AnyArray:
    r"""Compute $T$ with $T^\top G T = 1$: an inverse triangular factor, with a small floor on the diagonal.

    Rounding errors of $G$ may make it less than positive definite; then the floor is raised.

    >>> whitening(np.array([[4.0]])).round(6).tolist()
    [[0.5]]
    """
    xp = namespace(gram)
    scaled_eye = xp.linalg.trace(gram) * xp.eye(gram.shape[-1], dtype=gram.dtype)

    def raised() -> AnyArray:
        return cholesky(gram + RAISED * scaled_eye)

    factor = cholesky(gram + TINY * scaled_eye)
    is_factor = xp.isfinite(factor[-1, -1])
    if isinstance(factor, jax.Array):
        factor = jax.lax.cond(is_factor, lambda: factor, raised)
    elif not is_factor:
        factor = raised()
    return inverse_triangular(factor).T


def precision(dtype: DTypeLike) -> AbstractContextManager[Any]:
    """Enter a scope in which jax computes in `dtype` (float64 or float32), in this thread only."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


def widest[T](compute: Callable[[], T], dtype: DTypeLike) -> T:
    """Call `compute` in the precision of `dtype`, whatever jax was set to before.

    If that fails because jax mixes in float32 copies of NumPy arrays (see `in_double`), its compiled
    functions are forgotten and `compute` is called again.
    """
    with precision(dtype):
        try:
            return compute()
        except (TypeError, jax.errors.JaxRuntimeError) as error:
            if not any(text in str(error) for text in _MIXED):
                raise
        forget_compiled()
        return compute()


_MIXED = ("requires arguments to have the same dtypes", "but got buffer with incompatible size")


def in_double[T](compute: Callable[[Callable], T], fn: Callable[..., Any], *args: PyTree) -> T:
    """Call `compute` in float64 with `fn`, a function of `args` that it compiles.

    jax (seen in 0.10 to 0.12) copies a NumPy array that a function reads, such as data, to the precision
    that it is set to. It keeps this copy for as long as it keeps a function compiled with it, and uses it
    in the other precision too: scores would be computed from data in float32, and afterwards the user's
    own functions would fail. If jax is set to float32 and the function reads NumPy arrays, compiled
    functions are therefore forgotten before and after; they are compiled again at their next use.
    """

    def of_released(*given: PyTree) -> Any:
        with released(given):
            return fn(*given)

    copies = not jax.config.jax_enable_x64 and _reads_arrays(of_released, *args)
    if copies:
        forget_compiled()
    try:
        with precision(np.float64):
            return compute(of_released)
    finally:
        if copies:
            forget_compiled()


def forget_compiled() -> None:
    """Let jax forget all functions that it has compiled, and its copies of the NumPy arrays in them."""
    gc.collect()
    jax.clear_caches()
    gc.collect()


@contextmanager
def released(args: PyTree) -> Iterator[None]:
    """Around a function of `args`: if it fails while jax traces it, jax forgets the arrays that it has read.

    Otherwise jax keeps them for ever, in the precision of the failed call.
    """
    try:
        yield
    except BaseException:
        for leaf in jax.tree.leaves(args):
            if isinstance(leaf, Tracer):
                # jax does this itself, but only after a call that succeeds
                getattr(getattr(leaf, "_trace", None), "invalidate", lambda: None)()
        raise


def _reads_arrays(fn: Callable[..., Any], *args: PyTree) -> bool:
    """Whether a function, when traced, reads NumPy arrays; also if it cannot be traced in float32."""
    single = jax.tree.map(
        lambda leaf: np.asarray(leaf, jax.dtypes.canonicalize_dtype(leaf.dtype)), args
    )
    try:
        program = jax.make_jaxpr(fn)(*single)
    except Exception:
        return True
    return any(
        np.ndim(constant) > 0 and not isinstance(constant, jax.Array)
        for constant in _constants(program)
    )


def _constants(program: Any) -> Iterator[Any]:
    """Iterate over the constants of a jaxpr and of the jaxprs nested in it."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        yield from (variable.val for variable in equation.invars if hasattr(variable, "val"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _constants(inner)


def _is_program(node: object) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")


def to_numpy(tree: PyTree) -> PyTree:
    """Move every jax array of a tree to NumPy, so that it keeps its precision outside the scope."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def as_leaf(value: float | np.number | AnyArray) -> AnyArray:
    """Convert a hyper-parameter to an array: traced by jit, so a grid of values shares one compilation."""
    return np.asarray(value, dtype=np.float64)


class _Limit:
    """Limit on BLAS threads that the first user sets and the last one removes, in any order of exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limits = threadpool_limits(1, user_api="blas")

    def leave(self) -> None:
        with self._lock:
            self._users = max(0, self._users - 1)
            if self._users == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_LIMIT = _Limit()  # one per process, like the threads of BLAS


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process.

    >>> with one_blas_thread():
    ...     pass
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


SMALL = 2**20  # numbers


@contextmanager
def few_threads(sample: object) -> Iterator[None]:
    """Limit BLAS to one thread if a sample has few draws: its threads would wait longer than they work.

    On two idle cores a summary of 12 dimensions and 1,200 draws took 2.8 s of CPU time with one thread
    and 10.6 s with two, and 26 s on busy cores. One of 100 dimensions and 2,000 draws took 11 s, and 19
    to 28 s if only its estimates, and not its audit, ran on one thread.

    >>> from types import SimpleNamespace
    >>> with few_threads(SimpleNamespace(draws=np.zeros((4, 250, 10)))):
    ...     pass
    """
    draws = getattr(sample, "draws", None)  # what is no sample is refused inside
    if draws is None or draws.size > SMALL:
        yield
        return
    with one_blas_thread():
        yield
