-- Who may call: API keys, of which only the SHA-256 of the secret is kept. role is reader, writer or
-- admin, labels a JSON object that a session must bear to be the key's.
CREATE TABLE foldlog_keys (
    key_id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    labels TEXT NOT NULL,
    name TEXT NOT NULL,
    secret_sha256 BLOB NOT NULL,
    created_ns INTEGER NOT NULL,
    expires_ns INTEGER,
    revoked_ns INTEGER
);

-- How much a tenant may use; NULL means what the settings say, 0 without limit.
CREATE TABLE foldlog_quotas (
    tenant TEXT NOT NULL PRIMARY KEY,
    sessions INTEGER,
    bytes INTEGER,
    calls_per_s INTEGER,
    watches INTEGER
);

-- What a tenant's rows come to, counted with the session index, exactly once.
CREATE TABLE foldlog_usage (
    tenant TEXT NOT NULL PRIMARY KEY,
    sessions INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);

INSERT INTO foldlog_usage (tenant, sessions, bytes)
SELECT tenant, 0, sum(length(state)) FROM foldlog_events
WHERE notification_id <= (
    SELECT coalesce(max(notification_id), 0) FROM foldlog_tracking WHERE application_name = 'sessions'
)
GROUP BY tenant;

UPDATE foldlog_usage SET sessions = (
    SELECT count(*) FROM foldlog_sessions s WHERE s.tenant = foldlog_usage.tenant AND NOT s.deleted
);
