"""Converters between provider requests and the log's messages and header, which lose nothing."""
