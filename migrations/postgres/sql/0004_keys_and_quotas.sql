-- Who may call: API keys, of which only the SHA-256 of the secret is kept. labels is a JSON object that
-- a session must bear to be the key's.
CREATE TABLE foldlog_keys (
    key_id text NOT NULL,
    tenant text NOT NULL,
    role text NOT NULL,
    labels text NOT NULL,
    name text NOT NULL,
    secret_sha256 bytea NOT NULL,
    created_ns bigint NOT NULL,
    expires_ns bigint,
    revoked_ns bigint,
    CONSTRAINT foldlog_keys_id PRIMARY KEY (key_id),
    CONSTRAINT foldlog_keys_role CHECK (role IN ('reader', 'writer', 'admin'))
);

-- How much a tenant may use; NULL means what the settings say, 0 without limit.
CREATE TABLE foldlog_quotas (
    tenant text NOT NULL,
    sessions bigint,
    bytes bigint,
    calls_per_s bigint,
    watches bigint,
    CONSTRAINT foldlog_quotas_tenant PRIMARY KEY (tenant)
);

-- What a tenant's rows come to, counted with the session index, exactly once.
CREATE TABLE foldlog_usage (
    tenant text NOT NULL,
    sessions bigint NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT foldlog_usage_tenant PRIMARY KEY (tenant)
);

-- Rows that come while this runs are counted by the index, which moves on with its position.
INSERT INTO foldlog_usage (tenant, sessions, bytes)
SELECT tenant, 0, sum(length(state)) FROM foldlog_events
WHERE notification_id <= (
    SELECT coalesce(max(notification_id), 0) FROM foldlog_tracking WHERE application_name = 'sessions'
)
GROUP BY tenant;

UPDATE foldlog_usage u SET sessions = (
    SELECT count(*) FROM foldlog_sessions s WHERE s.tenant = u.tenant AND NOT s.deleted
);
