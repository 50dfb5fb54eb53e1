"""The experiments of the five papers: needed to make them again, not to use a method."""
