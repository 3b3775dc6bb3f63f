"""What a benchmark's page says of where its figures come from, made up."""

ABOUT = {
    "command": "python -m benchmarks",
    "date": "2026-11-15",
    "cpu": "a processor",
    "cores": 2,
    "python": "3.12",
    "steinax": "0.1",
    "source": "abc",
    "jax": "0.12",
    "numpy": "2.2",
}
