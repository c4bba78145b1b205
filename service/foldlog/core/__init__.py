"""The pure core: the standard library only, no clock, no randomness, no I/O."""
