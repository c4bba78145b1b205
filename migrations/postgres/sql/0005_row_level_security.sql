-- Who may do what, apart from the owner, who may do all. The service's own user commits, and reads
-- of the log no more than tells a conflict. For anything else its transactions take a role:
-- foldlog_tenant, which sees the rows of the tenant that the transaction has set, or foldlog_system,
-- which follows the feed and keeps the index. A statement that takes none sees next to nothing.
GRANT SELECT ON foldlog_version, foldlog_feed TO foldlog_committer, foldlog_tenant, foldlog_system;

GRANT SELECT ON foldlog_tracking TO foldlog_tenant;

GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_tracking TO foldlog_system;

ALTER TABLE foldlog_events ENABLE ROW LEVEL SECURITY;

CREATE POLICY foldlog_events_append ON foldlog_events
    FOR INSERT TO foldlog_committer WITH CHECK (true);

CREATE POLICY foldlog_events_conflict ON foldlog_events
    FOR SELECT TO foldlog_committer USING (true);

GRANT INSERT, SELECT (originator_id, originator_version, request_key, notification_id)
    ON foldlog_events TO foldlog_committer;

GRANT SELECT, UPDATE (state) ON foldlog_events TO foldlog_tenant;

GRANT SELECT ON foldlog_events TO foldlog_system;

GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_checkpoints, foldlog_objects TO foldlog_tenant;

GRANT SELECT, UPDATE, DELETE ON foldlog_object_references TO foldlog_tenant;

GRANT SELECT ON foldlog_sessions, foldlog_session_terms, foldlog_lineage, foldlog_call_ledger
    TO foldlog_tenant;

GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_sessions, foldlog_session_terms, foldlog_lineage,
    foldlog_call_ledger, foldlog_object_references TO foldlog_system;

GRANT SELECT ON foldlog_checkpoints, foldlog_objects TO foldlog_system;

-- Keys are for those who find out whose a call is, before there is a tenant.
GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_keys, foldlog_quotas, foldlog_usage
    TO foldlog_system;

GRANT SELECT ON foldlog_quotas, foldlog_usage TO foldlog_tenant;

-- It has no tenant of its own: a tenant sees which of its sessions are whose ancestors.
ALTER TABLE foldlog_lineage ENABLE ROW LEVEL SECURITY;

CREATE POLICY foldlog_lineage_tenant ON foldlog_lineage FOR SELECT TO foldlog_tenant USING (
    EXISTS (SELECT FROM foldlog_sessions s WHERE s.aggregate_id = foldlog_lineage.ancestor_id)
);

CREATE POLICY foldlog_lineage_system ON foldlog_lineage TO foldlog_system USING (true);
