// A worker in Node.js: creates, appends, reads, checks and forks, with the .proto files alone.
// Usage: node session.js ADDRESS PROTO_FOLDER
'use strict';

const assert = require('node:assert/strict');
const { randomUUID } = require('node:crypto');
const { readFileSync } = require('node:fs');
const path = require('node:path');

const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const { encoded, prefixDigest } = require('./digest.js');

const [address, protos] = process.argv.slice(2);

function connect() {
  const definition = protoLoader.loadSync('foldlog/v1/service.proto', {
    includeDirs: [protos],
    longs: String,
    enums: String,
    oneofs: false,
  });
  const { SessionService } = grpc.loadPackageDefinition(definition).foldlog.v1;
  return new SessionService(address, grpc.credentials.createInsecure());
}

const client = connect();

const call = (method, request) =>
  new Promise((resolve, reject) => {
    const deadline = Date.now() + 30_000;
    client[method](request, { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
  });

async function messagesOf(sessionId, fields = {}) {
  const messages = [];
  let last = null;
  for await (const piece of client.GetMessages({ sessionId, ...fields })) {
    messages.push(...(piece.messages ?? []));
    last = piece;
  }
  return { messages, digest: last.digest, nextSeq: last.nextSeq };
}

function verifyVectors() {
  const vectors = JSON.parse(readFileSync(path.join(protos, 'foldlog/v1/vectors.json'), 'utf8'));
  for (const { name, message, m } of vectors.messages) {
    assert.equal(encoded(message).toString('hex'), m, name);
  }
  for (const { name, messages, digest, count, leading_system: leading } of vectors.sequences) {
    const told = prefixDigest(messages);
    assert.equal(told.digest.toString('hex'), digest, name);
    assert.deepEqual([told.count, told.leadingSystem], [count, leading], name);
  }
  return vectors.messages.length + vectors.sequences.length;
}

const TRANSCRIPT = [
  { role: 'ROLE_SYSTEM', text: 'You are careful.' },
  { role: 'ROLE_USER', text: 'What is in a.txt? \u0000 é 🧩' },
  {
    role: 'ROLE_ASSISTANT',
    text: '',
    toolCalls: [{ id: 'call_1', name: 'read_file', arguments: '{ "path": "a.txt", "n": 9007199254740993 }' }],
  },
  { role: 'ROLE_TOOL', text: '3 lines', toolCallId: 'call_1', name: 'read_file' },
  {
    role: 'ROLE_ASSISTANT',
    parts: { parts: [{ text: 'Three lines.' }, { opaque: { kind: 'x.note', json: '{"b":1.0, "a":1}' } }] },
  },
];

async function appendAndRead(sessionId) {
  const request = {
    sessionId,
    requestId: 'first',
    events: TRANSCRIPT.map((message) => ({ body: { message } })),
    expectedNextSeq: '0',
  };
  const answer = await call('AppendEvents', request);
  assert.deepEqual([answer.firstSeq ?? '0', answer.nextSeq], ['0', '5']);
  assert.deepEqual(await call('AppendEvents', request), answer);
  const { messages, digest } = await messagesOf(sessionId);
  assert.deepEqual(messages.map((each) => each.seq ?? '0'), ['0', '1', '2', '3', '4']);
  assert.equal(messages[1].message.text, TRANSCRIPT[1].text);
  assert.equal(messages[2].message.toolCalls[0].arguments, TRANSCRIPT[2].toolCalls[0].arguments);
  assert.deepEqual(digest.digest, prefixDigest(TRANSCRIPT).digest);
}

async function check(sessionId) {
  const full = await call('CheckRequest', { sessionId, messages: TRANSCRIPT });
  assert.ok(full.checked && !full.violation);
  for (let cut = 1; cut <= TRANSCRIPT.length; cut += 1) {
    const prefix = prefixDigest(TRANSCRIPT.slice(0, cut));
    const answer = await call('CheckRequest', { sessionId, prefix, messages: TRANSCRIPT.slice(cut) });
    assert.ok(answer.checked && !answer.violation && !answer.needFullList, `cut at ${cut}`);
  }
  const forged = [...TRANSCRIPT.slice(0, 3), { ...TRANSCRIPT[3], text: '4 lines' }, TRANSCRIPT[4]];
  const told = await call('CheckRequest', { sessionId, messages: forged });
  assert.equal(told.violation.kind, 'VIOLATION_KIND_MISSING_MESSAGE');
  assert.deepEqual([told.violation.index, told.violation.missing[0].preview], ['3', '3 lines']);
  await assert.rejects(call('CheckRequest', { sessionId, messages: forged, mode: 'CHECK_MODE_STRICT' }), {
    code: grpc.status.FAILED_PRECONDITION,
  });
}

async function compactAndFork(sessionId) {
  const summary = { role: 'ROLE_SYSTEM', text: 'Summary.' };
  const replace = { entries: { firstSeq: '1', lastSeq: '4' } };
  const events = [{ body: { message: summary }, replace }];
  const answer = await call('AppendEvents', { sessionId, events });
  assert.deepEqual(answer.replaces[0].shadowedSeqs, ['1', '2', '3', '4']);
  const fork = await call('ForkSession', { sessionId, atSeq: '3' });
  assert.equal(fork.session.parent.atSeq, '3');
  const child = await messagesOf(fork.session.sessionId);
  assert.deepEqual(child.messages.map((each) => each.seq ?? '0'), ['0', '1', '2', '3']);
  const parent = await messagesOf(sessionId);
  assert.deepEqual(parent.messages.map((each) => each.message.text), ['You are careful.', 'Summary.']);
}

async function refusals(sessionId) {
  const events = [{ body: { message: { role: 'ROLE_TOOL', text: 'no id' } } }];
  await assert.rejects(call('AppendEvents', { sessionId, events }), { code: grpc.status.INVALID_ARGUMENT });
  await assert.rejects(call('GetSession', { sessionId: randomUUID() }), { code: grpc.status.NOT_FOUND });
}

async function main() {
  const count = verifyVectors();
  const sessionId = `node-${randomUUID()}`;
  await call('CreateSession', { sessionId, labels: { from: 'node' } });
  await appendAndRead(sessionId);
  await check(sessionId);
  await compactAndFork(sessionId);
  await refusals(sessionId);
  client.close();
  console.log(`ok: ${count} vectors, session ${sessionId}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
