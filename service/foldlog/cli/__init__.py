"""The command `foldlog`: run the service, look into it, and use it from a shell."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit."""
    from foldlog.cli.app import app

    app(prog_name="foldlog")
