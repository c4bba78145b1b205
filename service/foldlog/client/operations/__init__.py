"""The calls of the client, each written once, without I/O."""
