-- Attachments, each once per tenant, under the SHA-256 of its bytes. Those up to a setting's size are
-- kept in data; of larger ones, file is the name in the directory and chunks the SHA-256 of each MiB.
-- touched_ns is when it was last put or asked for: what is younger than a grace is never collected.
CREATE TABLE foldlog_objects (
    tenant text NOT NULL,
    sha256 bytea NOT NULL,
    size_bytes bigint NOT NULL,
    created_ns bigint NOT NULL,
    touched_ns bigint NOT NULL,
    file text,
    chunks bytea NOT NULL,
    data bytea,
    CONSTRAINT foldlog_objects_digest PRIMARY KEY (tenant, sha256)
);

-- Which rows name which attachments, as far as a collection has followed the feed. A row is dropped
-- if a fact says so; its body may still be there for a fork.
CREATE TABLE foldlog_object_references (
    tenant text NOT NULL,
    sha256 bytea NOT NULL,
    aggregate_id uuid NOT NULL,
    version bigint NOT NULL,
    seq bigint NOT NULL,
    dropped boolean NOT NULL DEFAULT false,
    CONSTRAINT foldlog_object_references_row PRIMARY KEY (aggregate_id, version, sha256)
);

CREATE INDEX foldlog_object_references_object
    ON foldlog_object_references (tenant, sha256, aggregate_id, version);
