"""Lets `python -m foldlog` do what `foldlog` does."""

from foldlog.cli import main

if __name__ == "__main__":
    main()
