"""The store in one SQLite file, or in memory: one process, one writer, a few readers."""
