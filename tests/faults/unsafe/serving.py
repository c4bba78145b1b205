"""Starts Foldlog with one of its parts exchanged: for storms, and nowhere else."""

from __future__ import annotations

from foldlog.cli import main


def serve_with(place: object, name: str, instead: object) -> None:
    """Run the command line after putting something else under a name of a module or class."""
    getattr(place, name)  # what is exchanged is to be there
    setattr(place, name, instead)
    main()
