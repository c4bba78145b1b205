"""Bare servers: the least that gRPC, and a durable write behind it, cost in Python."""
