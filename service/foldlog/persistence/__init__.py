"""Where events are kept: recorders on SQLite and PostgreSQL, and the session index."""
