"""How the client's channels are set up."""

from __future__ import annotations

from typing import Final

from foldlog.client.state import MIB

OPTIONS: Final = (
    # Attempts are made by the client itself, which knows deadlines and request ids.
    ("grpc.enable_retries", 0),
    # A server that restarts is to be found at once: gRPC's own backoff begins at a second.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Despite its name, how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    # A peer that vanished without a word is noticed on an open watch or stream. The service accepts
    # pings this often; gRPC's default server would call it too many.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # A proxy that the environment names for the web is not a way to the service.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 64 * MIB),
    ("grpc.max_send_message_length", -1),
)
