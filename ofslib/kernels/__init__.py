"""What the kernels of several methods share: rows, losses, penalties, selection, solvers."""
