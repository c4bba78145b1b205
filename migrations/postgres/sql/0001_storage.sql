-- Rows are appended and hardly ever changed: analyze often, vacuum for the index-only bits and the
-- freezing of transaction ids only.
ALTER TABLE foldlog_events SET (
    autovacuum_vacuum_scale_factor = 0.5,
    autovacuum_vacuum_insert_scale_factor = 0.5,
    autovacuum_analyze_scale_factor = 0.02
);
