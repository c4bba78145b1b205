"""The story: a server, three recorded agents, and one section for each thing that is promised."""

from __future__ import annotations

import time

from foldlog import Client

from demo import (
    attaching,
    checking,
    compacting,
    crashing,
    forking,
    rebuilding,
    recovering,
    replaying,
    verifying,
)
from demo.screen import Screen
from demo.server import Server
from demo.transcripts import load


def tell(screen: Screen, server: Server) -> None:
    """Tell all of it. Raises ClaimError at the first claim that does not hold."""
    begun = time.monotonic()
    coder, supporter, researcher = map(load, ("coding_agent", "support_agent", "research_agent"))
    screen.title(
        "Foldlog, shown on three recorded agents",
        "A claim that does not hold ends the demo with an error.",
    )
    serve(screen, server)
    with Client(server.address) as client:
        replaying.show(screen, client, [coder, supporter, researcher])
        crashing.show(screen, client, server, coder)
        compacting.show(screen, client, supporter)
        forking.show(screen, client, researcher)
        checking.show(screen, client.session(coder.session_id))
        session = recovering.show(screen, client, server.address, supporter, server.folder)
        rebuilding.show(screen, session, server)
        attaching.show(screen, client, researcher)
        verifying.show(screen, client, coder)
    took = time.monotonic() - begun
    screen.conclusion(
        f"All {screen.claims} claims held, in {took:.1f} s.",
        "To keep the database and look around: .venv/bin/python -m demo --folder FOLDER",
    )


def serve(screen: Screen, server: Server) -> None:
    """Start the server."""
    screen.section("Serve", "One process and one SQLite file, with nothing to set up.")
    took = server.start()
    screen.claim(
        server.database.exists(),
        f"serving at {server.address} after {took:.1f} s",
        f"foldlog serve --database-url sqlite:///{server.database}",
    )
