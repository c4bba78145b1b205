-- The tool-effect ledger: what events say of dispatched tool calls, so that the unresolved ones are
-- listed across sessions. kind is 1 for a dispatch, 2 for what resolved one, 3 for a rewind, to to_seq.
-- What is resolved stays, since a rewind can undo it. Texts are UTF-8 as bytes, which may hold NUL.
CREATE TABLE foldlog_call_ledger (
    tenant text NOT NULL,
    aggregate_id uuid NOT NULL,
    seq bigint NOT NULL,
    kind smallint NOT NULL,
    call_id bytea NOT NULL,
    to_seq bigint,
    name bytea NOT NULL,
    idempotency_key bytea NOT NULL,
    time_s bigint NOT NULL,
    time_ns integer NOT NULL,
    unresolved boolean NOT NULL,
    CONSTRAINT foldlog_call_ledger_line PRIMARY KEY (aggregate_id, seq)
);

CREATE INDEX foldlog_call_ledger_listing
    ON foldlog_call_ledger (tenant, time_s, time_ns, aggregate_id, seq) WHERE unresolved;

CREATE INDEX foldlog_call_ledger_session
    ON foldlog_call_ledger (aggregate_id, time_s, time_ns, seq) WHERE unresolved;
