"""Parsers and decoders in this process, and any bytes."""
