-- The tool-effect ledger: what events say of dispatched tool calls, so that the unresolved ones are
-- listed across sessions. kind is 1 for a dispatch, 2 for what resolved one, 3 for a rewind, to to_seq.
-- What is resolved stays, since a rewind can undo it. Texts are UTF-8 as bytes.
CREATE TABLE foldlog_call_ledger (
    tenant TEXT NOT NULL,
    aggregate_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    call_id BLOB NOT NULL,
    to_seq INTEGER,
    name BLOB NOT NULL,
    idempotency_key BLOB NOT NULL,
    time_s INTEGER NOT NULL,
    time_ns INTEGER NOT NULL,
    unresolved INTEGER NOT NULL,
    PRIMARY KEY (aggregate_id, seq)
);

CREATE INDEX foldlog_call_ledger_listing
    ON foldlog_call_ledger (tenant, time_s, time_ns, aggregate_id, seq) WHERE unresolved;

CREATE INDEX foldlog_call_ledger_session
    ON foldlog_call_ledger (aggregate_id, time_s, time_ns, seq) WHERE unresolved;
