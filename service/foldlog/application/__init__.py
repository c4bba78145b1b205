"""The application: sessions written through a committer and read through folds."""
