-- Attachments, each once per tenant, under the SHA-256 of its bytes. Those up to a setting's size are
-- kept in data; of larger ones, file is the name in the directory and chunks the SHA-256 of each MiB.
-- touched_ns is when it was last put or asked for: what is younger than a grace is never collected.
CREATE TABLE foldlog_objects (
    tenant TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    touched_ns INTEGER NOT NULL,
    file TEXT,
    chunks BLOB NOT NULL,
    data BLOB,
    PRIMARY KEY (tenant, sha256)
);

-- Which rows name which attachments, as far as a collection has followed the feed. A row is dropped
-- if a fact says so; its body may still be there for a fork.
CREATE TABLE foldlog_object_references (
    tenant TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    aggregate_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    dropped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (aggregate_id, version, sha256)
) WITHOUT ROWID;

CREATE INDEX foldlog_object_references_object
    ON foldlog_object_references (tenant, sha256, aggregate_id, version);
