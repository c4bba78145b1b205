-- Erasures that began and are not done: what a crash interrupts is taken up from here.
CREATE TABLE foldlog_erasures (
    tenant text NOT NULL,
    aggregate_id uuid NOT NULL,
    CONSTRAINT foldlog_erasures_session PRIMARY KEY (aggregate_id)
);

GRANT SELECT, DELETE ON foldlog_erasures TO foldlog_tenant;

GRANT SELECT, INSERT, UPDATE, DELETE ON foldlog_erasures TO foldlog_system;
