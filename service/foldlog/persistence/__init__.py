"""Where events are kept: `eventsourcing` recorders on SQLite and PostgreSQL, and the session index."""
