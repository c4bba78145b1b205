-- The data keys of encrypted sessions, each wrapped by the master key that key_id names. Deleting a
-- row makes what it encrypts unreadable for good.
CREATE TABLE foldlog_session_keys (
    tenant text NOT NULL,
    aggregate_id uuid NOT NULL,
    key_id text NOT NULL,
    wrapped bytea NOT NULL,
    CONSTRAINT foldlog_session_keys_session PRIMARY KEY (aggregate_id)
);

-- Which master keys are in use, and which keys one of them wraps.
CREATE INDEX foldlog_session_keys_master ON foldlog_session_keys (key_id, aggregate_id);

-- An encrypted attachment has a key of its own.
ALTER TABLE foldlog_objects ADD COLUMN key_id text, ADD COLUMN wrapped bytea;

CREATE INDEX foldlog_objects_master ON foldlog_objects (key_id, tenant, sha256)
    WHERE key_id IS NOT NULL;

GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_session_keys TO foldlog_tenant, foldlog_system;

-- Rotating the master key wraps the keys of all tenants' attachments anew.
GRANT UPDATE (key_id, wrapped) ON foldlog_objects TO foldlog_system;
