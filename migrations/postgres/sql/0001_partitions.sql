-- Constraints of partitions carry names of their own, since code maps them; attaching a partition
-- joins its indexes to the parent's.
CREATE TABLE foldlog_events_p{partition} (
    LIKE foldlog_events INCLUDING DEFAULTS,
    CONSTRAINT foldlog_events_p{partition}_version PRIMARY KEY (originator_id, originator_version)
) WITH (
    autovacuum_vacuum_scale_factor = 0.5,
    autovacuum_vacuum_insert_scale_factor = 0.5,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE UNIQUE INDEX foldlog_events_p{partition}_request
    ON foldlog_events_p{partition} (originator_id, request_key) WHERE request_key IS NOT NULL;

CREATE INDEX foldlog_events_p{partition}_feed ON foldlog_events_p{partition} (notification_id);

ALTER TABLE foldlog_events ATTACH PARTITION foldlog_events_p{partition}
    FOR VALUES WITH (MODULUS {partitions}, REMAINDER {partition});

CREATE TABLE foldlog_checkpoints_p{partition} (
    LIKE foldlog_checkpoints INCLUDING DEFAULTS,
    CONSTRAINT foldlog_checkpoints_p{partition}_version
        PRIMARY KEY (originator_id, originator_version)
);

ALTER TABLE foldlog_checkpoints ATTACH PARTITION foldlog_checkpoints_p{partition}
    FOR VALUES WITH (MODULUS {partitions}, REMAINDER {partition});
