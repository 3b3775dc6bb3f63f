"""Compiled programs outlive a run."""

import os
from pathlib import Path


def keep_programs() -> None:
    """Have jax keep what it compiles, where the environment does not say so already."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(user, "steinax", "jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
