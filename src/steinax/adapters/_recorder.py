"""Record every point at which a sampler evaluates a log density, with its value and gradient."""

import ctypes
import itertools
import threading
import weakref
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.custom_batching import custom_vmap
from jax.flatten_util import ravel_pytree

from .._types import PyTree
from ..data import Sample
from ._pytrees import column_names, dataset, flat_columns, leaves, over_draws, quantities

BUNDLE = 1024  # messages of a compiled program that are unpacked together
NUMBERS = itertools.count()  # one for each inbox of the process
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


def record(
    log_density: Callable[[Any], Any],
    *,
    potential: bool = False,
    every: int = 8,
    most: int = 20_000,
    forward: bool = False,
) -> "Recorder":
    r"""Wrap a log density so that it records where a sampler evaluates it.

    NUTS computes between 8 and 60 gradients for each draw that it returns. Give the sampler
    `recorded = record(log_density)` in place of `log_density`, and after the warm-up `recorded.sample()`
    holds the points, log densities and scores that were computed on the way. Use them as training points
    of control variates: `Sample(draws, scores, training=warmup_points)`. Take them before the draws
    begin, because the states between two draws resemble these draws, and because training points that
    include a draw are not used.

    Values and gradients are those of `log_density`, inside `jit`, `vmap`, `grad`, `scan` and `while_loop`
    too, so BlackJAX, NumPyro (`NUTS(potential_fn=record(potential_fn, potential=True))`), an ensemble
    sampler in NumPy and `scipy.optimize` can all use it. Under `vmap` all chains are recorded in one step,
    which takes about 12 microseconds on a CPU, and longer on other devices. A compiled program
    therefore records a pseudo-random eighth of its steps. For a density that takes more than 0.1
    milliseconds to differentiate use `every=1`, which records all points for less than 15% of the time.

    Args:
        log_density: $\log \pi$ up to a constant, of one position: an array (dim,), or a pytree such as a
            dict. For gradients it is written in jax.
        potential: whether the function is $-\log \pi$, as NumPyro's `potential_fn`. The sample has the
            log density and its gradient all the same.
        every: inside compiled programs, record one in this many evaluations, chosen by the bits of the
            values. Outside of them every evaluation is recorded.
        most: the largest number of points to keep: from a longer run, evenly spaced points are kept.
        forward: differentiate in forward mode, for densities without reverse mode, such as those with
            `lax.while_loop` or `diffrax.ForwardMode`.

    >>> import jax, jax.numpy as jnp
    >>> recorded = record(lambda x: -jnp.sum(x**2) / 2, every=1)
    >>> def step(x, _):
    ...     return x + 0.1 * jax.grad(recorded)(x), None
    >>> last, _ = jax.lax.scan(step, jnp.ones(3), length=20)
    >>> recorded
    Recorder(20 points, 3 dimensions, of 20 recorded evaluations)
    >>> recorded.sample()
    Sample(1 chain x 20 draws, 3 dimensions: x[0], x[1], x[2])
    """
    if not callable(log_density):
        raise TypeError(
            f"record takes a function of one position and not a {type(log_density).__name__}: give the "
            "log density, and pass the recorder that is returned to the sampler in its place."
        )
    for name, number in {"every": every, "most": most}.items():
        if number < 1 or number != int(number):
            raise ValueError(f"{name} is {number!r}: give a whole number, of at least 1.")
    return Recorder(log_density, potential, int(every), int(most), forward)


class Recorder:
    """A log density that records where it is evaluated; made by `record`.

    Call it like the function that it records. `len` is the number of draws of its `sample()`.
    """

    def __init__(
        self,
        fn: Callable[[Any], Any],
        potential: bool,
        every: int,
        most: int,
        forward: bool,
    ):
        self.every = every
        self.most = most
        self._fn = fn
        self._sign = -1.0 if potential else 1.0
        self._both = _by_columns(fn) if forward else jax.value_and_grad(fn)
        self._structure: tuple[Any, tuple[tuple[int, ...], ...]] | None = None
        self._inboxes: dict[tuple[bool, str], _Inbox] = {}
        self._lock = threading.RLock()
        self._traced = self._differentiable()

    def __call__(self, position: PyTree) -> Any:
        """Evaluate the function at one position, and record it."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(position)):
            return self._traced(position)
        value = self._fn(position)
        self._check(position)
        self._keep(position, value=_one_number(value))
        return value

    def sample(
        self,
        *,
        rescore: bool = False,
        constrain: Callable[[Any], Mapping[str, Any]] | None = None,
        names: Sequence[str] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Any] | None = None,
    ) -> Sample:
        """Make a sample of the recorded points, as one chain, for `Sample(..., training=)`.

        Points that were recorded twice are kept once, and those where the position, the value or the
        gradient is not finite are left out. Scores are those that the sampler computed: in float32, jax's
        default, they have about six digits. Where the sampler asked for values alone, scores are computed
        now, in float64.

        Args:
            rescore: compute all values and scores again, in float64: one gradient for each point.
            constrain: takes one position and returns a dict of the quantities to request by name, as in
                `from_logdensity`. Without it these are the entries of a dict of positions.
            names: one per column; by default `x[0]`, ... for an array, and for a pytree the keys.
            dims: the names of the axes of a quantity, after (chain, draw): `{"theta": ["school"]}`.
            coords: the labels along such an axis: `{"school": ["Choate", ...]}`.

        >>> import jax.numpy as jnp, numpy as np
        >>> recorded = record(lambda z: -(z["mu"] ** 2) / 2)
        >>> values = [recorded({"mu": mu}) for mu in np.linspace(-1, 1, 5)]  # no gradients
        >>> recorded.sample().scores[0, :, 0]
        array([ 1. ,  0.5, -0. , -0.5, -1. ])
        """
        x, values, gradients = self._points()
        missing = np.isnan(gradients).any(axis=1) | rescore
        if missing.any():
            values[missing], gradients[missing] = self._evaluate(x[missing])
        fine = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
        if not fine.any():
            raise ValueError(_nothing(len(x)))
        draws = self._tree(x[fine])
        position = leaves(draws, "positions")
        variables = quantities(constrain, draws, position)
        return Sample(
            flat_columns(position),
            self._sign * gradients[None, fine],
            column_names(position, variables) if names is None else names,
            variables=dataset({"posterior": variables}, dims, coords) if variables else None,
            log_density=self._sign * values[None, fine],
            verified=True,
        )

    def clear(self) -> None:
        """Forget all points, such as those of the warm-up.

        >>> recorded = record(lambda x: -(x @ x))
        >>> value = recorded(np.ones(2))
        >>> recorded.clear()
        >>> len(recorded)
        0
        """
        _settle()
        with self._lock:
            for inbox in self._inboxes.values():
                inbox.clear()

    def __len__(self) -> int:
        return len(self._points()[0])

    def __bool__(self) -> bool:
        """Return True: a recorder is true, like a function, even before it has recorded anything."""
        return True

    def __repr__(self) -> str:
        count, dim = self._points()[0].shape
        seen = sum(inbox.seen for inbox in self._inboxes.values())
        return f"Recorder({count} points, {dim} dimensions, of {seen} recorded evaluations)"

    def __getstate__(self) -> Any:
        raise TypeError(
            "a recorder cannot be copied or sent to another process, where its points would be lost: use "
            "threads, or one process; or pickle the log density itself, and give draws to from_logdensity."
        )

    def _differentiable(self) -> Callable[[PyTree], Any]:
        """Wrap the function for jax, so that its derivative is recorded where one is computed."""

        @jax.custom_jvp
        def value(position: PyTree) -> Any:
            found = jnp.asarray(_one_number(self._fn(position)))
            return found + self._told(position, found)

        @value.defjvp
        def _(primals: tuple[PyTree], tangents: tuple[PyTree]) -> tuple[Any, Any]:
            found, gradient = self._both(*primals)
            found = jnp.asarray(_one_number(found))
            zero = self._told(*primals, found, gradient)
            terms = jax.tree.map(
                lambda g, t: jnp.vdot(g + zero.astype(g.dtype), t), gradient, *tangents
            )
            slope = jax.tree.reduce(jnp.add, terms)
            return found + zero.astype(found.dtype), slope.astype(found.dtype)

        return value

    def _told(self, position: PyTree, value: Any, gradient: PyTree = None) -> Any:
        """Record from inside a program; returns a zero that the program cannot know to be one.

        The caller adds it to what it returns. The program then cannot leave out the recording, though it has
        no side effect as far as jax knows: jax refuses side effects in loops whose length differs between
        chains, of which NUTS is made.
        """
        self._check(position)
        value, position, gradient = jax.lax.stop_gradient((value, position, gradient))
        trees = (position,) if gradient is None else (position, gradient)
        if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((value, trees))):
            self._keep(*trees, value=value)
            return jnp.zeros_like(value)
        parts = [ravel_pytree(tree)[0] for tree in trees]
        double = any(part.dtype == jnp.float64 for part in (value, *parts))
        dtype = "float64" if double else "float32"
        inbox = self._inbox(gradient is not None, dtype)
        rows = [part.astype(dtype)[None] for part in parts]
        zero = inbox.receive(value.astype(dtype)[None], *rows)[0]
        return zero.astype(value.dtype)

    def _keep(self, *trees: PyTree, value: Any) -> None:
        """Record from outside of a compiled program: a position, and its gradient if there is one."""
        columns = [np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(trees)]
        row = np.concatenate([np.asarray(value, np.float64)[None], *columns])
        inbox = self._inbox(len(trees) == 2, "float64")
        inbox.messages.append(row.tobytes())
        if len(inbox.messages) >= BUNDLE:
            inbox.unpack()

    def _check(self, position: PyTree) -> None:
        arrays, tree = jax.tree.flatten(position)
        found = tree, tuple(np.shape(array) for array in arrays)
        with self._lock:
            if self._structure is None:
                self._structure = found
        if found != self._structure:
            raise ValueError(
                f"the density was evaluated at a position {_described(*found)}, but earlier at one "
                f"{_described(*self._structure)}: make a recorder for each kind of position. It takes one "
                "position at a time; for many use jax.vmap."
            )

    def _inbox(self, has_gradient: bool, dtype: str) -> "_Inbox":
        with self._lock:
            key = has_gradient, dtype
            if key not in self._inboxes:
                width = 1 + self._dim() * (2 if has_gradient else 1)
                self._inboxes[key] = _Inbox(width, dtype, 2 * self.most, self.every)
            return self._inboxes[key]

    def _dim(self) -> int:
        shapes = self._structure[1] if self._structure else ()
        return sum(int(np.prod(shape)) for shape in shapes)

    def _points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Select distinct finite points, values and gradients (NaN where not computed), in float64."""
        _settle()
        dim = self._dim()
        with self._lock:
            kept = [(key[0], inbox.rows()) for key, inbox in self._inboxes.items()]
        wide = [np.full((0, 2 * dim + 1), np.nan)]
        for has_gradient, rows in sorted(kept, key=lambda pair: not pair[0]):
            finite = rows[np.isfinite(rows).all(axis=1)].astype(np.float64)
            unknown = np.full((len(finite), 0 if has_gradient else dim), np.nan)
            wide.append(np.hstack([finite, unknown]))
        rows = _distinct(np.concatenate(wide), dim)
        rows = rows[_smallest(_scattered(np.arange(len(rows))), self.most)]
        return rows[:, 1 : dim + 1], rows[:, 0].copy(), rows[:, dim + 1 :].copy()

    def _tree(self, x: np.ndarray) -> PyTree:
        """Convert the columns to positions with leaves (1, n, ...)."""
        assert self._structure is not None
        tree, shapes = self._structure
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        parts = np.split(x, ends, axis=1)
        return jax.tree.unflatten(
            tree,
            [part.reshape(1, len(x), *shape) for part, shape in zip(parts, shapes, strict=True)],
        )

    def _evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute values and gradients at given points, in float64."""
        try:
            values, gradients = over_draws(self._both, self._tree(x))
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise ValueError(
                "the sampler asked for values without gradients, and the density is not made of jax "
                "operations, so its gradients cannot be computed now: write it with jax.numpy (jnp.log for "
                "np.log, jnp.where for if)."
            ) from error
        return values[0], flat_columns(leaves(gradients, "scores"))[0]


class _Inbox:
    """Rows of one width and type, (value, position) or (value, position, gradient), at most `room` of them.

    Of more rows those with the smallest scattered numbers are kept: an even selection of all rows so far.
    """

    def __init__(self, width: int, dtype: str, room: int, every: int):
        self.width = width
        self.dtype = np.dtype(dtype)
        self.room = room
        self.messages: list[bytes] = []  # one list for ever: programs append to it
        self._lock = threading.Lock()
        self._forget()
        self.receive = _batched(partial(_sent, self._channels(), every=every))

    def clear(self) -> None:
        with self._lock:
            self.messages.clear()
            self._forget()

    def rows(self) -> np.ndarray:
        """Return the rows that are kept, in the order in which they came."""
        self.unpack()
        with self._lock:
            self._merge()
            return self._blocks[0]

    def unpack(self) -> None:
        """Choose rows from the messages that have arrived."""
        with self._lock:
            count = len(self.messages)
            rows = np.frombuffer(b"".join(self.messages[:count]), self.dtype)
            del self.messages[:count]
            rows = rows.reshape(-1, self.width)
            places = np.arange(self.seen, self.seen + len(rows))
            self.seen += len(rows)
            chosen = _scattered(places) <= self._limit
            self._blocks.append(rows[chosen])
            self._places.append(places[chosen])
            if sum(map(len, self._places[1:])) > self.room:
                self._merge()

    def _forget(self) -> None:
        self.seen = 0
        self._limit = np.uint64(2**64 - 1)
        self._blocks = [np.empty((0, self.width), self.dtype)]
        self._places = [np.empty(0, np.int64)]

    def _merge(self) -> None:
        places = np.concatenate(self._places)
        chosen = _smallest(_scattered(places), self.room)
        if len(chosen) < len(places):
            self._limit = _scattered(places[chosen]).max()
        self._blocks, self._places = [np.concatenate(self._blocks)[chosen]], [places[chosen]]

    def _channels(self) -> dict[str, Callable[..., Any]]:
        """List the ways out of a compiled program, by platform: rows (n, width), zeros (n,) -> zeros (n,)."""
        inbox, messages = weakref.ref(self), self.messages

        def tidy() -> None:
            if (found := inbox()) is None:
                messages.clear()
            else:
                found.unpack()

        def called(rows: Any, zeros: Any) -> np.ndarray:
            messages.append(np.asarray(rows).tobytes())
            if len(messages) >= BUNDLE:
                tidy()
            return np.zeros(zeros.shape, zeros.dtype)

        def callback(rows: Any, zeros: Any) -> Any:
            return jax.pure_callback(called, zeros, rows, zeros)

        name = _registered(messages, tidy, self.width * self.dtype.itemsize)
        if name is None:
            return {"default": callback}

        def handed(rows: Any, zeros: Any) -> Any:
            out = jax.ShapeDtypeStruct(zeros.shape, zeros.dtype)
            return jax.ffi.ffi_call(name, out, input_output_aliases={1: 0})(rows, zeros)

        return {"cpu": handed, "default": callback}


def _batched(send: Callable[..., Any]) -> Callable[..., Any]:
    """Make `vmap` of a function of rows (n, ...) call it once, with the rows of all."""

    @custom_vmap
    def receive(*parts: Any) -> Any:
        return send(*parts)

    @receive.def_vmap
    def _(size: int, batched: Sequence[bool], *parts: Any) -> tuple[Any, bool]:
        whole = [
            part if has else jnp.broadcast_to(part, (size, *part.shape))
            for part, has in zip(parts, batched, strict=True)
        ]
        zeros = receive(*(part.reshape(-1, *part.shape[2:]) for part in whole))
        return zeros.reshape(whole[0].shape[:2]), True

    return receive


def _sent(channels: dict[str, Callable[..., Any]], values: Any, *parts: Any, every: int) -> Any:
    """Send rows out of the program, or one in `every` times; returns zeros (n,)."""
    zeros = jnp.zeros_like(values)

    def send() -> Any:
        rows = jnp.concatenate([values[:, None], *parts], axis=1)
        return jax.lax.platform_dependent(rows, zeros, **channels)

    if every == 1:
        return send()
    bits = jnp.sum(jax.lax.bitcast_convert_type(values, jnp.uint32), dtype=jnp.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finaliser of MurmurHash3
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    chosen = (bits ^ (bits >> 16)) < jnp.uint32(2**32 // every)
    return jax.lax.cond(chosen, send, lambda: zeros)


# The layout of XLA's call frame, in words of 8 bytes (xla/ffi/api/c_api.h), and the version of the API that
# it is taken from. Later minor versions only add fields at the end.
MAJOR, MINOR = 0, 5
EXTENSION, API, ARGUMENTS = 1, 2, 9  # of the frame
DATA, SIZES = 3, 5  # of a buffer
KIND, METADATA = 1, 3  # of an extension
VERSION = 24  # bytes: of the metadata, and 32 of the API
_frame = (ctypes.c_int64 * 10).from_address
_buffer = (ctypes.c_int64 * 6).from_address
_word = ctypes.c_int64.from_address
_handlers: list[Any] = []  # a compiled program may call them at any time
_threads: set[int] = set()


def _registered(messages: list[bytes], tidy: Callable[[], None], stride: int) -> str | None:
    """Make XLA append the bytes of the first argument of a custom call to `messages`.

    `jax.pure_callback` does the same in twenty times the time: most of this function is written for speed.
    Returns None where XLA has another interface.

    Args:
        messages: what the calls append to.
        tidy: called whenever there are `BUNDLE` messages.
        stride: the bytes in each row of the argument, (n, ...).
    """
    name = f"steinax_recorder_{next(NUMBERS)}"
    append = messages.append
    views: dict[int, Callable[[int], Any]] = {}
    versions: list[tuple[int, int]] = []  # of the interface, as XLA says when it asks for ours

    def handle(frame: int) -> None:
        words = _frame(frame)
        if words[EXTENSION] and (theirs := _declared(words[EXTENSION], words[API])):
            versions.append(theirs)
            return
        if get_ident() not in _threads:
            # Otherwise Python would make a state for the thread at each call, which triples its time.
            _threads.add(get_ident())
            ctypes.pythonapi.PyGILState_Ensure()
        rows = _buffer(_word(words[ARGUMENTS]).value)
        count = _word(rows[SIZES]).value
        if count not in views:
            views[count] = (ctypes.c_char * (count * stride)).from_address
        append(bytes(views[count](rows[DATA])))
        if len(messages) >= BUNDLE:
            tidy()

    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handle)
    _handlers.append(handler)
    jax.devices("cpu")  # without a client XLA would ask for the version later
    try:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
    except Exception:  # of whichever type: XLA refuses another version of the interface
        return None
    known = [major == MAJOR and minor >= MINOR for major, minor in versions]
    return name if known and all(known) else None


def _declared(extension: int, api: int) -> tuple[int, int] | None:
    """Answer XLA's question for the version of the interface, if that is the question; returns XLA's."""
    words = (ctypes.c_int64 * 4).from_address(extension)
    if words[KIND] & 0xFFFFFFFF != 1:
        return None
    declared = (ctypes.c_int32 * 2).from_address(words[METADATA] + VERSION)
    theirs = (ctypes.c_int32 * 2).from_address(api + VERSION + 8) if api else (MAJOR, MINOR)
    declared[0], declared[1] = MAJOR, theirs[1]
    return theirs[0], theirs[1]


def _settle() -> None:
    """Wait until programs that were started have recorded what they evaluate."""
    jax.effects_barrier()
    jax.block_until_ready(jax.live_arrays())


def _by_columns(fn: Callable[[Any], Any]) -> Callable[[PyTree], tuple[Any, PyTree]]:
    """Compute the value and the gradient in forward mode."""

    def twice(position: PyTree) -> tuple[Any, Any]:
        value = fn(position)
        return value, value

    def both(position: PyTree) -> tuple[Any, PyTree]:
        gradient, value = jax.jacfwd(twice, has_aux=True)(position)
        return value, gradient

    return both


def _one_number(value: Any) -> Any:
    if np.shape(value) != ():
        raise ValueError(
            f"the density at one position has shape {np.shape(value)}: return one number, so sum over data; "
            "for many positions use jax.vmap."
        )
    return value


def _described(tree: Any, shapes: tuple[tuple[int, ...], ...]) -> str:
    return f"of shape {shapes[0]}" if tree.num_nodes == 1 else f"{tree} of shapes {shapes}"


def _nothing(points: int) -> str:
    if points:
        return (
            f"no gradient is finite at any of the {points} recorded points: check the density there, and "
            "that no jnp.where hides a division by zero from its gradient."
        )
    return (
        "nothing finite has been recorded: give the recorder to the sampler in place of the log density, and "
        "ask for the sample after the run."
    )


def _scattered(places: np.ndarray) -> np.ndarray:
    """Map places to numbers that spread evenly over 64 bits, also for every k-th place."""
    return places.astype(np.uint64) * GOLDEN


def _smallest(numbers: np.ndarray, most: int) -> np.ndarray:
    """Find the indices of the `most` smallest numbers, in increasing order."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    return np.sort(np.argpartition(numbers, most)[:most])


def _first_of_each(rows: np.ndarray) -> np.ndarray:
    """Find the indices of rows that equal no earlier row with the same checksum, in increasing order."""
    bits = np.ascontiguousarray(rows, np.float64).view(np.uint64)
    factors = np.random.default_rng(0).integers(
        2**63, size=bits.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    sums = np.sum((bits ^ (bits >> np.uint64(29))) * factors, axis=1, dtype=np.uint64)
    _, first, which = np.unique(sums, return_index=True, return_inverse=True)
    earliest = first[which]
    repeated = (bits == bits[earliest]).all(axis=1) & (earliest < np.arange(len(rows)))
    return np.flatnonzero(~repeated)


def _distinct(rows: np.ndarray, dim: int) -> np.ndarray:
    return rows[_first_of_each(rows[:, 1 : dim + 1])]
