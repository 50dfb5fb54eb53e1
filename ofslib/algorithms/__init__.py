"""The algorithms, one file each. A new file is found by its name alone: nothing to register."""
