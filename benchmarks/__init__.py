"""Times of this library beside others, and beside what the machine can do: python -m benchmarks."""
