-- Events and facts. notification_id is the place in the feed: the id of the transaction that wrote the
-- row, plus the offset of foldlog_feed, shifted by 20 bits, and the row's number in the transaction.
-- It is unique by construction; a unique index on it could not be distributed.
CREATE TABLE foldlog_events (
    tenant text NOT NULL,
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text NOT NULL,
    state bytea NOT NULL,
    request_key bytea,
    notification_id bigint NOT NULL,
    CONSTRAINT foldlog_events_version PRIMARY KEY (originator_id, originator_version)
) /* PARTITION BY */;

CREATE UNIQUE INDEX foldlog_events_request ON foldlog_events (originator_id, request_key)
    WHERE request_key IS NOT NULL;

CREATE INDEX foldlog_events_feed ON foldlog_events (notification_id);

-- Checkpoints of folds: a cache that may be emptied.
CREATE TABLE foldlog_checkpoints (
    tenant text NOT NULL,
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text NOT NULL,
    state bytea NOT NULL,
    CONSTRAINT foldlog_checkpoints_version PRIMARY KEY (originator_id, originator_version)
) /* PARTITION BY */;

-- One row: what is added to transaction ids, so that places rise after a move to a server whose
-- transaction ids are lower.
CREATE TABLE foldlog_feed (xid_offset bigint NOT NULL);

INSERT INTO foldlog_feed (xid_offset) VALUES (0);
