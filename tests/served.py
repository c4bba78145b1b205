"""A real server process for tests: started, killed, restarted on the same database and port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from foldlog.v1 import service_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[1]
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 30.0
# After a restart a channel is to find the server at once, not after gRPC's second of back-off.
CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class NotServingError(RuntimeError):
    """The server process ended, or did not come up in time. The message holds its output."""


class Served:
    """One `foldlog serve` process at a time, and one channel to it.

    Another program is a module that does what foldlog's does but for what it changes.
    """

    def __init__(
        self,
        database_url: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        program: str = "foldlog",
    ) -> None:
        self.database_url = database_url
        self.program = program
        self.output = directory / "server.log"
        self.address = ""
        self._directory = directory
        self._environment = dict(environment or {})
        self._address_file = directory / "address"
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: grpc.Channel | None = None

    def start(self) -> Served:
        """Start the process and return once calls pass; on the former port if it had one."""
        self._address_file.unlink(missing_ok=True)
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self._directory,
                env=self.process_environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.address = self._awaited_address()
        if self._channel is not None:
            self._wait_for_calls(self._channel)
        return self

    def _wait_for_calls(self, channel: grpc.Channel) -> None:
        """Wait until calls pass: a channel may believe in its connection to the former process."""
        health = health_pb2_grpc.HealthStub(channel)
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            try:
                health.Check(
                    health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=START_DEADLINE_S
                )
            except grpc.RpcError:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", self.program, "serve"),
            *("--listen", self.address or "127.0.0.1:0"),
            *("--database-url", self.database_url),
            *("--address-file", str(self._address_file)),
        ]

    def process_environment(self) -> dict[str, str]:
        """Return the environment of its processes, in which our modules are found."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FOLDLOG_")}
        paths = [self._environment.get("PYTHONPATH", ""), str(ROOT / "service"), str(ROOT)]
        joined = os.pathsep.join(path for path in paths if path)
        return kept | self._environment | {"PYTHONPATH": joined}

    def _awaited_address(self) -> str:
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline:
            if self._address_file.exists():
                return self._address_file.read_text().strip()
            if self.process.poll() is not None:
                break
            time.sleep(0.002)
        raise NotServingError(f"the server does not serve:\n{self.output_tail()}")

    @property
    def dialect(self) -> str:
        """The store's kind: sqlite or postgresql."""
        return self.database_url.partition(":")[0]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        if self._process is None:
            raise NotServingError("the server was not started")
        return self._process

    @property
    def channel(self) -> grpc.Channel:
        """The channel to the server; it outlives restarts."""
        if self._channel is None:
            self._channel = grpc.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        return self._channel

    @property
    def stub(self) -> Any:
        """The generated stub over the channel."""
        return service_pb2_grpc.SessionServiceStub(self.channel)

    def set_environment(self, **variables: str) -> None:
        """Set variables for the processes started from now on."""
        self._environment |= variables

    def kill9(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """Ask the process to shut down, wait, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_DEADLINE_S)

    def restart(self, mode: str = "kill9") -> Served:
        """End the process, by "kill9" or "graceful", and start it again."""
        if mode == "kill9":
            self.kill9()
        else:
            self.terminate()
        return self.start()

    def close(self) -> None:
        """Close the channel and end the process."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None and self._process.poll() is None:
            self.kill9()

    def output_tail(self, size_bytes: int = 8_000) -> str:
        """Return the end of what the processes wrote."""
        if not self.output.exists():
            return ""
        return self.output.read_bytes()[-size_bytes:].decode(errors="replace")
