-- Erasures that began and are not done: what a crash interrupts is taken up from here.
CREATE TABLE foldlog_erasures (
    tenant TEXT NOT NULL,
    aggregate_id BLOB NOT NULL PRIMARY KEY
) WITHOUT ROWID;
