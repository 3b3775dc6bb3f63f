"""The type of optax's optimisers, without the cost of importing optax."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import optax

    Optimiser = optax.GradientTransformation
else:
    Optimiser = Any
