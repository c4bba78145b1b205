"""The store in PostgreSQL: any number of processes."""
