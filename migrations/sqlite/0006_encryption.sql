-- The data keys of encrypted sessions, each wrapped by the master key that key_id names. Deleting a
-- row makes what it encrypts unreadable for good.
CREATE TABLE foldlog_session_keys (
    tenant TEXT NOT NULL,
    aggregate_id BLOB NOT NULL PRIMARY KEY,
    key_id TEXT NOT NULL,
    wrapped BLOB NOT NULL
) WITHOUT ROWID;

-- Which master keys are in use, and which keys one of them wraps.
CREATE INDEX foldlog_session_keys_master ON foldlog_session_keys (key_id, aggregate_id);

-- An encrypted attachment has a key of its own.
ALTER TABLE foldlog_objects ADD COLUMN key_id TEXT;

ALTER TABLE foldlog_objects ADD COLUMN wrapped BLOB;

CREATE INDEX foldlog_objects_master ON foldlog_objects (key_id, tenant, sha256)
    WHERE key_id IS NOT NULL;
