-- Up to where each projection has applied the feed.
CREATE TABLE foldlog_tracking (
    application_name text NOT NULL,
    notification_id bigint NOT NULL,
    CONSTRAINT foldlog_tracking_application PRIMARY KEY (application_name)
);

-- The session index. A time is whole seconds since 1970 and nanoseconds.
CREATE TABLE foldlog_sessions (
    tenant text NOT NULL,
    aggregate_id uuid NOT NULL,
    session_id text NOT NULL,
    parent_session_id text,
    parent_at_seq bigint,
    labels text NOT NULL,
    metadata_json text NOT NULL,
    next_seq bigint NOT NULL,
    create_s bigint NOT NULL,
    create_ns integer NOT NULL,
    update_s bigint NOT NULL,
    update_ns integer NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    CONSTRAINT foldlog_sessions_aggregate PRIMARY KEY (aggregate_id)
);

CREATE INDEX foldlog_sessions_created
    ON foldlog_sessions (tenant, create_s, create_ns, aggregate_id) WHERE NOT deleted;

CREATE INDEX foldlog_sessions_updated
    ON foldlog_sessions (tenant, update_s, update_ns) WHERE NOT deleted;

-- What listings filter on: one row for each label, for the parent, and for each kind, key and pair of
-- both that a custom event of the session carries; source says which. term is the SHA-256 of the
-- texts. The times are the session's, so that a page is read from the index in order.
CREATE TABLE foldlog_session_terms (
    tenant text NOT NULL,
    aggregate_id uuid NOT NULL,
    source smallint NOT NULL,
    term bytea NOT NULL,
    create_s bigint NOT NULL,
    create_ns integer NOT NULL,
    CONSTRAINT foldlog_session_terms_term PRIMARY KEY (aggregate_id, source, term)
);

CREATE INDEX foldlog_session_terms_listing
    ON foldlog_session_terms (tenant, source, term, create_s, create_ns, aggregate_id);

-- Which ancestors' rows a fork reads, up to which version.
CREATE TABLE foldlog_lineage (
    aggregate_id uuid NOT NULL,
    ancestor_id uuid NOT NULL,
    to_version bigint NOT NULL,
    CONSTRAINT foldlog_lineage_ancestors PRIMARY KEY (aggregate_id, ancestor_id)
);

CREATE INDEX foldlog_lineage_ancestor ON foldlog_lineage (ancestor_id, aggregate_id);
