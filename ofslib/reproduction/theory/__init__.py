"""Theory beside experiment: the runs that hold the statements of the papers against data."""
