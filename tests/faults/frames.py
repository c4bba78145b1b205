"""HTTP/2 as bytes: frames as they are to be, and as nobody is to send them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
MAX_STREAM: Final = 2**31 - 1
READ_BYTES: Final = 65_536


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    head = len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4)
    return head + payload


def field(name: str, value: str) -> bytes:
    """Return a header field as a literal that no table keeps; both are short."""
    encoded = name.encode(), value.encode()
    return b"\x00" + b"".join(bytes((len(each),)) + each for each in encoded)


def headers(path: str, **more: str) -> bytes:
    """Return the header block of a gRPC call; an underscore stands for a hyphen."""
    pairs = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "a"}
    pairs |= {"te": "trailers", "content-type": "application/grpc"}
    pairs |= {name.replace("_", "-"): value for name, value in more.items()}
    return b"".join(field(name, value) for name, value in pairs.items())


def message(data: bytes, *, compressed: int = 0, size: int | None = None) -> bytes:
    """Return a gRPC message with its prefix, which may lie about its size."""
    return bytes((compressed,)) + (len(data) if size is None else size).to_bytes(4) + data


def call(stream: int, path: str, sent: bytes, *, ends: bool = True, **more: str) -> bytes:
    """Return the frames of a call."""
    end = END_STREAM if ends else 0
    block = frame(HEADERS, END_HEADERS, stream, headers(path, **more))
    return block + frame(DATA, end, stream, sent)


OPENING: Final = PREFACE + frame(SETTINGS, 0, 0)


@dataclass(frozen=True, slots=True)
class Junk:
    """What is sent on a connection; nothing follows, and nothing is closed."""

    name: str
    data: bytes


def junk(random: Random, path: str) -> Iterator[Junk]:
    """Yield what to send, each on a connection of its own; `path` is that of a unary call."""
    request = message(b"\x0a\x01a")
    yield Junk("nothing", b"")
    yield Junk("half a preface", PREFACE[:10])
    yield Junk("half a call", OPENING + call(1, path, request[:3], ends=False))
    yield Junk("a message that never comes", OPENING + call(1, path, b"", ends=False))
    yield Junk("a message far too short", OPENING + call(1, path, message(b"x", size=99)))
    yield Junk("a message of 4 GiB", OPENING + call(1, path, message(b"x", size=2**32 - 1)))
    yield Junk("no message", OPENING + call(1, path, b""))
    yield Junk("two messages", OPENING + call(1, path, request * 2))
    yield Junk("half a header block", OPENING + frame(HEADERS, 0, 1, headers(path)[:30]))
    yield from _lies(path, request)
    yield from _strangers(random)
    yield from _floods(path, request)
    yield from _nonsense(random, path)


def _lies(path: str, request: bytes) -> Iterator[Junk]:
    """Yield calls that say of themselves what is not so."""
    squeezed = message(b"no gzip", compressed=1)
    for encoding in ("gzip", "deflate", "br", "identity", "x" * 60):
        said = call(1, path, squeezed, grpc_encoding=encoding)
        yield Junk(f"said to be {encoding[:9]}", OPENING + said)
    yield Junk("compressed as by nobody", OPENING + call(1, path, squeezed))
    yield Junk("a flag that is none", OPENING + call(1, path, message(b"", compressed=255)))
    for timeout in ("-1S", "1000000000000000H", "x", "0n"):
        yield Junk(f"timeout {timeout}", OPENING + call(1, path, request, grpc_timeout=timeout))
    for wrong in ("/", "", "/a", "//", path + "/x", "*", "/%00/\x01"):
        yield Junk(f"path {wrong!r}", OPENING + call(1, wrong, request))
    yield Junk("another content", OPENING + call(1, path, request, content_type="text/html"))


def _strangers(random: Random) -> Iterator[Junk]:
    """Yield what other protocols say."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(508)
    yield Junk("TLS", hello)
    yield Junk("HTTP/1.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    yield Junk("HTTP/1.1 for ever", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000)
    yield Junk("PostgreSQL", b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
    yield Junk("a shell", b"SSH-2.0-OpenSSH_9.9\r\n")
    for size in (1, 9, 24, 1_000, 100_000):
        yield Junk(f"{size} bytes of noise", random.randbytes(size))


def _floods(path: str, request: bytes) -> Iterator[Junk]:
    """Yield far too much of what is allowed."""
    reset = frame(RST_STREAM, 0, 1, (8).to_bytes(4))
    opened = b"".join(
        call(n, path, request) + reset[:5] + n.to_bytes(4) + reset[9:] for n in range(1, 4_001, 2)
    )
    yield Junk("streams reset at once", OPENING + opened)
    yield Junk("streams never ended", OPENING + _unended(path, 2_000))
    yield Junk("pings", OPENING + frame(PING, 0, 0, bytes(8)) * 20_000)
    yield Junk("settings", OPENING + frame(SETTINGS, 0, 0, b"\0\4\0\0\xff\xff") * 20_000)
    yield Junk("empty data", OPENING + call(1, path, b"", ends=False) + frame(DATA, 0, 1) * 20_000)
    opening = frame(HEADERS, 0, 1, headers(path))
    more = frame(CONTINUATION, 0, 1, field("a", "b" * 100) * 100) * 200
    yield Junk("headers without end", OPENING + opening + more)
    yield Junk("priorities", OPENING + frame(PRIORITY, 0, 1, bytes(5)) * 20_000)


def _unended(path: str, count: int) -> bytes:
    block = headers(path)
    return b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, block) for n in range(count))


def _nonsense(random: Random, path: str) -> Iterator[Junk]:
    """Yield frames that HTTP/2 forbids, or that are no frames."""
    block = headers(path)
    yield Junk("data of no stream", OPENING + frame(DATA, 0, 0, b"x"))
    yield Junk("headers of no stream", OPENING + frame(HEADERS, END_HEADERS, 0, block))
    yield Junk("a stream of the server's", OPENING + frame(HEADERS, END_HEADERS, 2, block))
    yield Junk("a push", OPENING + frame(PUSH, 4, 1, block))
    yield Junk("a window too wide", OPENING + frame(WINDOW, 0, 0, (2**31 - 1).to_bytes(4)) * 3)
    yield Junk("a window of nothing", OPENING + frame(WINDOW, 0, 0, bytes(4)))
    yield Junk("a frame too large", OPENING + b"\xff\xff\xff\0\0\0\0\0\1" + bytes(70_000))
    yield Junk("no HPACK", OPENING + frame(HEADERS, END_HEADERS, 1, b"\xff" * 400))
    wide = b"\x3f\xff\xff\xff\x7f"
    yield Junk("a table too large", OPENING + frame(HEADERS, END_HEADERS, 1, wide))
    yield Junk("the last stream", OPENING + call(MAX_STREAM, path, b""))
    yield Junk("no preface", frame(SETTINGS, 0, 0) + call(1, path, b""))
    for number in range(12):
        frames = b"".join(_any_frame(random) for _ in range(20))
        yield Junk(f"frames of chance {number}", OPENING + frames)


def _any_frame(random: Random) -> bytes:
    kind, flags = random.randrange(12), random.randrange(256)
    stream = random.choice((0, 1, 2, 3, MAX_STREAM, 2**32 - 1))
    return frame(kind, flags, stream, random.randbytes(random.choice((0, 1, 4, 5, 6, 8, 300))))


def sent(address: str, data: bytes) -> socket.socket:
    """Open a connection and send bytes; a server that has enough of them may have closed it."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    with suppress(OSError):
        connection.sendall(data)
    return connection


def is_over(connection: socket.socket) -> bool:
    """Read what there is; return whether the server has closed the connection."""
    connection.setblocking(False)
    try:
        while connection.recv(READ_BYTES):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
