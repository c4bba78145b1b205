-- Events and facts. notification_id is the feed's order: dense, since one process writes and rows
-- are never deleted.
CREATE TABLE foldlog_events (
    notification_id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    originator_id BLOB NOT NULL,
    originator_version INTEGER NOT NULL,
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    request_key BLOB
);

CREATE UNIQUE INDEX foldlog_events_version ON foldlog_events (originator_id, originator_version);

CREATE UNIQUE INDEX foldlog_events_request ON foldlog_events (originator_id, request_key)
    WHERE request_key IS NOT NULL;

-- Checkpoints of folds: a cache that may be emptied.
CREATE TABLE foldlog_checkpoints (
    tenant TEXT NOT NULL,
    originator_id BLOB NOT NULL,
    originator_version INTEGER NOT NULL,
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);

-- Up to where each projection has applied the feed.
CREATE TABLE foldlog_tracking (
    application_name TEXT NOT NULL PRIMARY KEY,
    notification_id INTEGER NOT NULL
) WITHOUT ROWID;

-- The session index. A time is whole seconds since 1970 and nanoseconds.
CREATE TABLE foldlog_sessions (
    tenant TEXT NOT NULL,
    aggregate_id BLOB NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    parent_session_id TEXT,
    parent_at_seq INTEGER,
    labels TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    next_seq INTEGER NOT NULL,
    create_s INTEGER NOT NULL,
    create_ns INTEGER NOT NULL,
    update_s INTEGER NOT NULL,
    update_ns INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX foldlog_sessions_created
    ON foldlog_sessions (tenant, create_s, create_ns, aggregate_id) WHERE NOT deleted;

CREATE INDEX foldlog_sessions_updated
    ON foldlog_sessions (tenant, update_s, update_ns) WHERE NOT deleted;

-- What listings filter on: one row for each label, for the parent, and for each kind, key and pair of
-- both that a custom event of the session carries; source says which. term is the SHA-256 of the
-- texts. The times are the session's, so that a page is read from the index in order.
CREATE TABLE foldlog_session_terms (
    tenant TEXT NOT NULL,
    aggregate_id BLOB NOT NULL,
    source INTEGER NOT NULL,
    term BLOB NOT NULL,
    create_s INTEGER NOT NULL,
    create_ns INTEGER NOT NULL,
    PRIMARY KEY (aggregate_id, source, term)
) WITHOUT ROWID;

CREATE INDEX foldlog_session_terms_listing
    ON foldlog_session_terms (tenant, source, term, create_s, create_ns, aggregate_id);

-- Which ancestors' rows a fork reads, up to which version.
CREATE TABLE foldlog_lineage (
    aggregate_id BLOB NOT NULL,
    ancestor_id BLOB NOT NULL,
    to_version INTEGER NOT NULL,
    PRIMARY KEY (aggregate_id, ancestor_id)
) WITHOUT ROWID;

CREATE INDEX foldlog_lineage_ancestor ON foldlog_lineage (ancestor_id, aggregate_id);
