"""What gRPC is told of connections: how many there may be, and what is borne from each."""

from __future__ import annotations

from resource import RLIMIT_NOFILE, getrlimit

from foldlog.settings import Settings

FIXED = (
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
)
OTHER_FILES = 256  # for the database, attachments and spools


def options_of(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Return the options of a server."""
    silence_ms = round(settings.keepalive_s * 1_000)
    return (
        *FIXED,
        ("grpc.so_reuseport", int(settings.workers > 1)),
        ("grpc.max_receive_message_length", settings.receive_bytes),
        # Whoever vanished without a word would be watching for ever.
        ("grpc.keepalive_time_ms", silence_ms),
        ("grpc.keepalive_timeout_ms", silence_ms),
        ("grpc.http2.ping_timeout_ms", silence_ms),
        ("grpc.max_allowed_incoming_connections", connections_of(settings.connections)),
        ("grpc.max_concurrent_streams", settings.calls_per_connection),
        ("grpc.server_handshake_timeout_ms", round(settings.handshake_timeout_s * 1_000)),
    )


def connections_of(wanted: int) -> int:
    """Return how many connections there may be, so that files are left for other things."""
    most, _ = getrlimit(RLIMIT_NOFILE)
    return min(wanted, max(most - OTHER_FILES, most // 2))
