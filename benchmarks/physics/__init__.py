"""What control variates gain in physics, where the expectation is the result."""
