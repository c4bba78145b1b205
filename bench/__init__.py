"""Measures Foldlog beside the machine's limits and the stores that others use: `make bench`."""
