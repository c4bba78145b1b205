// Prefix digests by the rules of vectors.json, from messages as proto-loader gives them.
'use strict';

const { createHash } = require('node:crypto');

const ROLES = { ROLE_UNSPECIFIED: 0, ROLE_SYSTEM: 1, ROLE_USER: 2, ROLE_ASSISTANT: 3, ROLE_TOOL: 4 };

const sha256 = (...parts) => createHash('sha256').update(Buffer.concat(parts)).digest();
const isSet = (value) => value !== undefined && value !== null;

function u32(number) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number >>> 0);
  return bytes;
}

function u64(number) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}

// A text is taken as its UTF-8, bytes as they are.
function str(value) {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : Buffer.from(value);
  return Buffer.concat([u32(bytes.length), bytes]);
}

const byte = (number) => Buffer.from([number]);
const opt = (value) => (isSet(value) ? Buffer.concat([byte(1), str(value)]) : byte(0));
const roleNumber = (role) => (typeof role === 'number' ? role : ROLES[role ?? 'ROLE_UNSPECIFIED']);

function attachment({ sha256: digest, mediaType, name, sizeBytes }) {
  const bytes = typeof digest === 'string' ? Buffer.from(digest, 'base64') : digest ?? Buffer.alloc(0);
  const size = isSet(sizeBytes) ? Buffer.concat([byte(1), u64(sizeBytes)]) : byte(0);
  return Buffer.concat([byte(2), str(bytes), str(mediaType ?? ''), opt(name), size]);
}

function part(given) {
  if (isSet(given.text)) return Buffer.concat([byte(1), str(given.text)]);
  if (given.attachment) return attachment(given.attachment);
  if (isSet(given.reasoning?.text)) return Buffer.concat([byte(3), str(given.reasoning.text)]);
  if (isSet(given.reasoning?.json)) return Buffer.concat([byte(4), str(given.reasoning.json)]);
  if (isSet(given.toolCallIndex)) return Buffer.concat([byte(5), u32(given.toolCallIndex)]);
  if (given.opaque) {
    return Buffer.concat([byte(6), str(given.opaque.kind ?? ''), str(given.opaque.json ?? '')]);
  }
  return byte(0);
}

function content(message) {
  if (isSet(message.text)) return Buffer.concat([byte(1), str(message.text)]);
  if (!message.parts) return byte(0);
  const parts = message.parts.parts ?? [];
  return Buffer.concat([byte(2), u32(parts.length), ...parts.map(part)]);
}

const call = ({ id, name, arguments: text }) => Buffer.concat([opt(id), opt(name), opt(text)]);

// The bytes of a message that a digest is taken over.
function encoded(message) {
  const role = roleNumber(message.role);
  if (role === ROLES.ROLE_SYSTEM) return u32(role);
  const calls = message.toolCalls ?? [];
  return Buffer.concat([
    u32(role),
    content(message),
    u32(calls.length),
    ...calls.map(call),
    opt(message.toolCallId),
    opt(message.name),
  ]);
}

// The digest of a request's first messages, as a PrefixDigest.
function prefixDigest(messages) {
  const leadingSystem = messages.length > 0 && roleNumber(messages[0].role) === ROLES.ROLE_SYSTEM;
  const covered = leadingSystem ? messages.slice(1) : messages;
  const digest = covered.reduce((d, m) => sha256(d, sha256(encoded(m))), Buffer.alloc(32));
  return { count: covered.length, digest, leadingSystem };
}

module.exports = { encoded, prefixDigest };
