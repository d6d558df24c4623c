// Checks a dossier as docs/specifications/evidence.md says: strict reading, SHA-2, Ed25519, proofs. Needs no page and no network.
// Everything here is public, so that nothing has to take constant time. A claim that fails throws a Wrong.
"use strict";

class Wrong extends Error {}
class NotLookedAt extends Error {}

const DOSSIER_TYPE = "https://maxrr.dev/dossier/v1";
const RECEIPT_TYPE = "https://maxrr.dev/receipt/v1";
const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const KEY_SUCCESSION = "https://maxrr.dev/key-succession/v1";
const MOST_RECORDS = 10000;
const LARGEST_DOSSIER = 64 << 20; // bytes
const LARGEST_CHECKPOINT = 1 << 20;
const LARGEST_KEYS = 1 << 20; // of a file of keys
const LONGEST_LAYOUT = 1 << 16;
const LONGEST_ID = 1000; // characters
const DEEPEST = 64; // lists and objects in each other
const SPACE = "\\t-\\r\\u001c-\\u0020\\u0085\\p{Z}"; // what Python calls white space, which JavaScript's \s is not quite
const BLANK = new RegExp(`^[${SPACE}]*$`, "u");
const NAME = new RegExp(`^[^+${SPACE}]+$`, "u");
const URI = new RegExp(`^[A-Za-z][A-Za-z0-9+.-]*:[^${SPACE}]+$`, "u");

// ---- bytes and text

const utf8 = (text) => new TextEncoder().encode(text);
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const same = (one, other) => one.length === other.length && one.every((byte, place) => byte === other[place]);

function join(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

function framed(...parts) {
  return join(...parts.flatMap((part) => {
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(part.length), true);
    return [length, part];
  }));
}

function fromHex(said, what, least = 32, most = least) {
  const fits = typeof said === "string" && said.length % 2 === 0 && said.length >= 2 * least && said.length <= 2 * most;
  if (!fits || /[^0-9a-f]/.test(said)) {
    throw new Wrong(`${what} is not hexadecimal digits in small letters, as many as it must have`);
  }
  return Uint8Array.from(said.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function fromBase64(said, what, size = null) {
  let found = null;
  try {
    found = atob(said);
  } catch {
    throw new Wrong(`${what} is not Base64`);
  }
  if (typeof said !== "string" || btoa(found) !== said) throw new Wrong(`${what} is Base64 that nobody writes`);
  if (size !== null && found.length !== size) throw new Wrong(`${what} has ${found.length} bytes instead of ${size}`);
  return Uint8Array.from(found, (sign) => sign.charCodeAt(0));
}

// ---- JSON, read strictly: no name twice, integers in full (as BigInt), no half characters

const PLAIN = '[^"\\\\\\u0000-\\u001f]*'; // of a string, between escapes: written so that no text takes long to refuse
const TOKEN = new RegExp(
  `[ \\t\\n\\r]*(?:([{}\\[\\],:])|("${PLAIN}(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})${PLAIN})*")` +
    "|(-?(?:0|[1-9][0-9]*))((?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(true|false|null))", "y");
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

function parseJson(text, what) {
  let place = 0;
  const refuse = () => { throw new Wrong(`${what} is not JSON as it must be`); };
  const next = () => {
    TOKEN.lastIndex = place;
    const found = TOKEN.exec(text) ?? refuse();
    place = TOKEN.lastIndex;
    return found;
  };
  const expect = (sign) => next()[1] === sign || refuse();
  const string = (token) => {
    const said = JSON.parse(token);
    return HALF.test(said) ? refuse() : said;
  };
  const value = ([, sign, quoted, whole, rest, word], depth) => {
    if (depth >= DEEPEST) refuse();
    if (quoted !== undefined) return string(quoted);
    if (word !== undefined) return JSON.parse(word);
    if (whole !== undefined) {
      if (rest === "") return whole.length <= 300 ? BigInt(whole) : refuse();
      const number = Number(whole + rest);
      return Number.isFinite(number) ? number : refuse();
    }
    if (sign === "[") {
      const list = [];
      for (let token = next(); token[1] !== "]" || list.length; token = next()) {
        list.push(value(token, depth + 1));
        const after = next()[1];
        if (after === "]") return list;
        if (after !== ",") refuse();
      }
      return list;
    }
    if (sign !== "{") refuse();
    const object = new Map();
    for (let token = next(); token[1] !== "}" || object.size; token = next()) {
      if (token[2] === undefined) refuse();
      const name = string(token[2]);
      if (object.has(name)) throw new Wrong(`${what} has one name twice`);
      expect(":");
      object.set(name, value(next(), depth + 1));
      const after = next()[1];
      if (after === "}") return object;
      if (after !== ",") refuse();
    }
    return object;
  };
  const read = value(next(), 0);
  if (/[^ \t\n\r]/.test(text.slice(place))) refuse();
  return read;
}

function exactly(said, names, what) {
  if (!(said instanceof Map)) throw new Wrong(`${what} is not a JSON object`);
  for (const name of said.keys()) {
    if (!names.includes(name)) throw new Wrong(`${what} has a field that is not known here: '${name.slice(0, 50)}'`);
  }
  for (const name of names) if (!said.has(name)) throw new Wrong(`${what} has no field '${name}'`);
  return Object.fromEntries(said);
}

function textOf(said, what) {
  if (typeof said !== "string") throw new Wrong(`${what} is not text`);
  return said;
}

function listOf(said, what, least, most) {
  if (!Array.isArray(said)) throw new Wrong(`${what} are not a list`);
  if (said.length < least || said.length > most) throw new Wrong(`${what} are ${said.length}, not ${least} to ${most}`);
  return said;
}

function countOf(said, what) {
  if (typeof said !== "bigint" || said < 0n || said >= 1n << 63n) throw new Wrong(`${what} is no count`);
  return said;
}

// ---- SHA-2: the browser's, or where it has none (a page that came by plain http), our own

async function sha(size, bytes) {
  if (globalThis.crypto?.subtle) return new Uint8Array(await crypto.subtle.digest(`SHA-${size}`, bytes));
  return sha2(size, bytes);
}

const sha256 = (...parts) => sha(256, join(...parts));

const CONSTANTS = {};

function constantsOf(word) {
  // The first bits of the fractional parts of the roots of the first primes (FIPS 180-4, 4.2 and 5.3).
  const rounds = word === 32n ? 64 : 80;
  const primes = [];
  for (let number = 2; primes.length < rounds; number++) {
    if (primes.every((prime) => number % prime)) primes.push(number);
  }
  const root = (value, power) => {
    let [low, high] = [0n, 1n << (word + 10n)];
    while (high - low > 1n) {
      const middle = (low + high) >> 1n;
      if (middle ** power <= value) low = middle;
      else high = middle;
    }
    return low & ((1n << word) - 1n);
  };
  return {
    k: primes.map((prime) => root(BigInt(prime) << (3n * word), 3n)),
    start: primes.slice(0, 8).map((prime) => root(BigInt(prime) << (2n * word), 2n)),
  };
}

function sha2(size, bytes) {
  const word = size === 256 ? 32n : 64n;
  const [wide, mask] = [Number(word) / 8, (1n << word) - 1n];
  const { k, start } = (CONSTANTS[size] ??= constantsOf(word));
  const turns = size === 256
    ? { a: [2n, 13n, 22n], e: [6n, 11n, 25n], low: [7n, 18n, 3n], high: [17n, 19n, 10n] }
    : { a: [28n, 34n, 39n], e: [14n, 18n, 41n], low: [1n, 8n, 7n], high: [19n, 61n, 6n] };
  const turned = (value, by) => ((value >> by) | (value << (word - by))) & mask;
  const big = (value, [x, y, z]) => turned(value, x) ^ turned(value, y) ^ turned(value, z);
  const small = (value, [x, y, z]) => turned(value, x) ^ turned(value, y) ^ (value >> z);
  const block = 16 * wide;
  const padded = new Uint8Array(Math.ceil((bytes.length + 1 + 2 * wide) / block) * block);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, 8n * BigInt(bytes.length));
  let state = start;
  for (let at = 0; at < padded.length; at += block) {
    const words = Array.from({ length: 16 }, (_, index) =>
      padded.subarray(at + index * wide, at + (index + 1) * wide).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n));
    for (let index = 16; index < k.length; index++) {
      words.push((words[index - 16] + small(words[index - 15], turns.low) + words[index - 7]
        + small(words[index - 2], turns.high)) & mask);
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let index = 0; index < k.length; index++) {
      const one = h + big(e, turns.e) + ((e & f) ^ (~e & mask & g)) + k[index] + words[index];
      const two = big(a, turns.a) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [(one + two) & mask, a, b, c, (d + one) & mask, e, f, g];
    }
    state = [a, b, c, d, e, f, g, h].map((value, index) => (value + state[index]) & mask);
  }
  return fromHex(state.map((value) => value.toString(16).padStart(2 * wide, "0")).join(""), "a hash", 8 * wide);
}

// ---- Ed25519 (RFC 8032): our own, since browsers do not agree on what a signature of a strange key or form is

const PRIME = (1n << 255n) - 19n;
const ORDER = (1n << 252n) + 27742317777372353535851937790883648493n;
const reduced = (value) => ((value % PRIME) + PRIME) % PRIME;

function power(base, exponent) {
  let result = 1n;
  for (let rest = exponent, square = reduced(base); rest > 0n; rest >>= 1n, square = (square * square) % PRIME) {
    if (rest & 1n) result = (result * square) % PRIME;
  }
  return result;
}

const D = reduced(-121665n * power(121666n, PRIME - 2n));
const HALF_TURN = power(2n, (PRIME - 1n) / 4n);
const littleEndian = (bytes) => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

function pointOf(bytes) {
  const number = littleEndian(bytes);
  const y = number & ((1n << 255n) - 1n);
  if (y >= PRIME) return null;
  const [up, down] = [reduced(y * y - 1n), reduced(D * y * y + 1n)];
  let x = reduced(up * down ** 3n * power(up * down ** 7n, (PRIME - 5n) / 8n));
  if (reduced(down * x * x) !== up) x = reduced(x * HALF_TURN);
  if (reduced(down * x * x) !== up) return null;
  const odd = number >> 255n;
  if (x === 0n && odd) return null;
  if ((x & 1n) !== odd) x = PRIME - x;
  return [x, y, 1n, reduced(x * y)];
}

function added([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = reduced((y1 - x1) * (y2 - x2));
  const b = reduced((y1 + x1) * (y2 + x2));
  const c = reduced(2n * D * t1 * t2);
  const d = reduced(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [reduced(e * f), reduced(g * h), reduced(f * g), reduced(e * h)];
}

function times(factor, point) {
  let sum = [0n, 1n, 1n, 0n];
  for (let rest = factor, twice = point; rest > 0n; rest >>= 1n, twice = added(twice, twice)) {
    if (rest & 1n) sum = added(sum, twice);
  }
  return sum;
}

const BASE = pointOf(fromHex("58" + "66".repeat(31), "the base point"));

// The y of the eight points of small order. Under such a key one signature is that of every eighth message, or of all.
const ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;
const SMALL_ORDER = [0n, 1n, PRIME - 1n, ORDER_8, PRIME - ORDER_8];

async function verifies(key, signature, message) {
  if (signature.length !== 64) return false;
  const [place, nonce] = [pointOf(key), pointOf(signature.subarray(0, 32))];
  const factor = littleEndian(signature.subarray(32));
  if (!place || !nonce || factor >= ORDER) return false;
  const challenge = littleEndian(await sha(512, join(signature.subarray(0, 32), key, message))) % ORDER;
  const [x1, y1, z1] = times(factor, BASE);
  const [x2, y2, z2] = added(nonce, times(challenge, place));
  return reduced(x1 * z2 - x2 * z1) === 0n && reduced(y1 * z2 - y2 * z1) === 0n;
}

// ---- keys

const BEFORE_KEY = fromHex("302a300506032b6570032100", "the beginning of a key", 12);
const [BEGIN, END] = ["-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"];

async function keyOf(base64) {
  const der = fromBase64(base64, "a public key");
  if (der.length !== 44 || !same(der.subarray(0, 12), BEFORE_KEY)) throw new Wrong("this is no Ed25519 public key in PEM");
  const raw = der.subarray(12);
  const y = littleEndian(raw) & ((1n << 255n) - 1n);
  if (y >= PRIME || SMALL_ORDER.includes(y)) throw new Wrong("this is a public key that no private key gives");
  return { raw, id: hexOf(await sha256(der)) };
}

async function exactKey(said) {
  const [begin, base64, end, ...rest] = textOf(said, "a public key").split("\n");
  if (begin !== BEGIN || end !== END || rest.length !== 1 || rest[0]) throw new Wrong("a public key is PEM that nobody writes");
  return keyOf(base64);
}

// All keys in a file of them: PEM, and between the keys each former one's word for its successor. Nothing else.
async function keysIn(text) {
  if (/PRIVATE KEY/.test(text)) throw new Wrong("this is a private key: nobody but its owner may have it");
  if (text.length > LARGEST_KEYS || /[^\u0000-\u007f]/.test(text)) throw new Wrong("this is no file of public keys in PEM");
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const [keys, successions] = [[], []];
  for (let place = 0; place < lines.length; place++) {
    if (lines[place] === BEGIN) {
      keys.push(await exactKey(`${lines.slice(place, place + 3).join("\n")}\n`));
      place += 2;
    } else if (lines[place].startsWith("{")) {
      successions.push(readEnvelope(parseJson(lines[place], "the envelope")));
    } else if (!BLANK.test(lines[place])) {
      throw new Wrong("there is something in this that is no public key, which begins with -----BEGIN PUBLIC KEY-----");
    }
  }
  if (!keys.length) throw new Wrong("there is no public key in this: it begins with -----BEGIN PUBLIC KEY-----");
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new Wrong("one of the public keys is there twice");
  for (const each of successions) await requireSuccession(each, keys);
  return keys;
}

// What somebody gives the page: such a file; or one key with a letter around it, and nothing that may be meant as more.
async function keysGiven(text) {
  const lines = text.replaceAll("\r\n", "\n");
  const [key] = new RegExp(`^${BEGIN}\n.*\n${END}$`, "m").exec(lines) ?? [];
  const alone = key && !lines.includes("{") && lines.match(/-----(BEGIN|END)/g).length === 2;
  return keysIn(alone ? key : text);
}

// That a former key has signed that another one succeeds it, and both are here.
async function requireSuccession(envelope, keys) {
  const { key: former } = envelope;
  const signer = keys.filter(({ id }) => id === former);
  if (!signer.length) throw new Wrong("a key is said to succeed one that is not here");
  const { subjects, type, predicate } = await openEnvelope(envelope, signer, "succession of a key");
  const said = exactly(predicate, ["former", "time"], "the succession of a key");
  const [{ digest }] = subjects;
  if (type !== KEY_SUCCESSION || subjects.length > 1 || said.former !== former || digest === former
    || !keys.some(({ id }) => id === digest) || !/^[0-9T:.+Z-]{10,40}$/.test(textOf(said.time, "the time of a succession"))) {
    throw new Wrong("a statement is not that one of these keys succeeds another");
  }
}

// ---- reading

function readProof(said, absent) {
  const what = "a proof of the dossier";
  const proof = exactly(said, absent ? ["siblings", "other"] : ["siblings"], what);
  const siblings = listOf(proof.siblings, "the siblings of a proof", 0, absent ? 255 : 256)
    .map((one) => fromHex(one, "a sibling"));
  if (siblings.length && siblings.at(-1).every((byte) => byte === 0)) throw new Wrong("the last sibling is empty");
  let other = null;
  if (absent && proof.other !== null) {
    const { key, value } = exactly(proof.other, ["key", "value"], "the other record of a proof");
    other = { key: fromHex(key, "a key"), value: fromHex(value, "a value") };
  }
  return { siblings, other };
}

function readIdentifier(said, what) {
  const fits = typeof said === "bigint" ? said >= -(1n << 63n) && said < 1n << 63n
    : typeof said === "string" && said.length > 0 && [...said].length <= LONGEST_ID;
  if (!fits) throw new Wrong(`${what} of the dossier is no integer of 64 bits, and no text that is not too long`);
  return said;
}

const identifierBytes = (id) => utf8(id === null ? "none" : typeof id === "bigint" ? `int:${id}` : `str:${id}`);

function readRecord(said) {
  const names = ["id", "salt", "value", "before", "after"];
  const has = said instanceof Map && said.has("after_value");
  const record = exactly(said, has ? [...names, "after_value"] : names, "a record of the dossier");
  const replaced = has && record.after_value !== null;
  if (!(record.id instanceof Map) || record.id.size !== 1) throw new Wrong("a record id is neither 'int' nor 'str'");
  const [[kind, id]] = record.id;
  if ({ int: "bigint", str: "string" }[kind] !== typeof id) throw new Wrong("a record id is neither 'int' nor 'str'");
  return {
    id: readIdentifier(id, "a record id"), salt: fromHex(record.salt, "a salt"), value: fromHex(record.value, "a value"),
    before: readProof(record.before, false), after: readProof(record.after, !replaced),
    afterValue: replaced ? fromHex(record.after_value, "a value") : null,
  };
}

function readEnvelope(said) {
  const envelope = exactly(said, ["payload", "payloadType", "signatures"], "the envelope");
  const [signed] = listOf(envelope.signatures, "the envelope's signatures", 1, 1);
  const { keyid, sig } = exactly(signed, ["keyid", "sig"], "the envelope's signature");
  return {
    payload: fromBase64(envelope.payload, "the envelope's payload"),
    kind: textOf(envelope.payloadType, "the envelope's payload type"),
    key: textOf(keyid, "a key id"), signature: fromBase64(sig, "the envelope's signature"),
  };
}

function readInclusion(said) {
  const { index, size, path } = exactly(said, ["index", "size", "path"], "the inclusion proof");
  if (countOf(index, "the place in the log") >= countOf(size, "the log's size")) {
    throw new Wrong("the proof is of an entry after the last one");
  }
  const hashes = listOf(path, "the hashes of the inclusion proof", 0, size.toString(2).length + 1);
  return { index, size, path: hashes.map((one) => fromHex(one, "a hash of the proof")) };
}

async function readDossier(text) {
  if (utf8(text).length > LARGEST_DOSSIER) throw new Wrong("the dossier is too large to be one");
  const said = parseJson(text, "the dossier");
  if (!(said instanceof Map) || said.get("type") !== DOSSIER_TYPE) throw new Wrong("this is no dossier");
  const dossier = exactly(said, ["type", "operator", "envelope", "subject", "records", "record_layout", "log", "keys"], "the dossier");
  const log = exactly(dossier.log, ["origin", "checkpoint", "inclusion"], "the dossier's log");
  if (dossier.operator !== null && typeof readIdentifier(dossier.operator, "the operator") !== "string") {
    throw new Wrong("the operator of the dossier is no text");
  }
  const records = listOf(dossier.records, "the dossier's records", 1, MOST_RECORDS).map(readRecord);
  if (new Set(records.map(({ id }) => `${typeof id}:${id}`)).size < records.length) {
    throw new Wrong("the dossier has a record twice");
  }
  const keys = await Promise.all(listOf(dossier.keys, "the dossier's keys", 1, 64).map(exactKey));
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new Wrong("the dossier has a key twice");
  return {
    envelope: readEnvelope(dossier.envelope),
    subject: dossier.subject === null ? null : readIdentifier(dossier.subject, "the subject"),
    records, layout: fromHex(dossier.record_layout, "the record layout", 1, LONGEST_LAYOUT),
    origin: textOf(log.origin, "the log's name"), checkpoint: textOf(log.checkpoint, "the checkpoint"),
    inclusion: readInclusion(log.inclusion), keys,
  };
}

// ---- what is signed

async function openEnvelope({ payload, kind, key, signature }, keys, what = "receipt") {
  const type = utf8(kind);
  const message = join(utf8(`DSSEv1 ${type.length} `), type, utf8(` ${payload.length} `), payload);
  const known = keys.find(({ id }) => id === key);
  if (!known) throw new Wrong("the receipt is not signed by this key");
  if (!(await verifies(known.raw, signature, message))) {
    throw new Wrong(`the signature of the key ${key} is not of this ${what}: it was changed`);
  }
  if (kind !== PAYLOAD_TYPE) throw new Wrong("what is signed is of another type");
  let text = null;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch {
    throw new Wrong("the statement is not UTF-8");
  }
  return readStatement(parseJson(text, "the statement"));
}

function readStatement(said) {
  const statement = exactly(said, ["_type", "subject", "predicateType", "predicate"], "the statement");
  if (statement._type !== STATEMENT_TYPE) throw new Wrong("the statement is of another type");
  const subjects = listOf(statement.subject, "the statement's subjects", 1, Infinity).map((each) => {
    const { name, digest } = exactly(each, ["name", "digest"], "a subject");
    if (!textOf(name, "a subject's name")) throw new Wrong("a subject has no name");
    return { name, digest: hexOf(fromHex(exactly(digest, ["sha256"], "a digest").sha256, "a digest")) };
  });
  if (new Set(subjects.map(({ name }) => name)).size < subjects.length) throw new Wrong("two subjects have one name");
  const { predicateType: type, predicate } = statement;
  if (!URI.test(textOf(type, "the predicate type"))) throw new Wrong("the predicate type is no URI");
  if (!(predicate instanceof Map)) throw new Wrong("the statement's predicate is not a JSON object");
  return { subjects, type, predicate };
}

function factsOf({ subjects, type, predicate }) {
  if (type !== RECEIPT_TYPE) throw new Wrong("the statement is no receipt, but of another type");
  const [{ name, digest }] = subjects;
  if (subjects.length > 1 || name !== "model" || digest !== predicate.get("model_after")) {
    throw new Wrong("the statement is not about the model that its receipt names");
  }
  const number = countOf(predicate.get("number"), "the receipt's number");
  if (number < 1n) throw new Wrong("receipts are counted from 1");
  const [before, after] = ["before", "after"].map((when) => countOf(predicate.get(`records_${when}`), "a count"));
  return {
    number, said: predicate,
    commitmentBefore: fromHex(predicate.get("commitment_before"), "the commitment before"),
    commitmentAfter: fromHex(predicate.get("commitment_after"), "the commitment after"),
    forgotten: BigInt(listOf(predicate.get("tombstones"), "the receipt's tombstones", 0, Infinity).length),
    fewer: before - after,
    inGroup: predicate.has("group"),
  };
}

function requireAgrees({ records }, { forgotten, fewer, inGroup }) {
  if (BigInt(records.length) > forgotten) {
    throw new Wrong(`this is about ${records.length} records, the receipt about ${forgotten}`);
  }
  const whole = fewer === forgotten || (fewer === 0n && forgotten === 1n);
  if (inGroup ? fewer < forgotten : !whole) {
    throw new Wrong(`of ${forgotten} forgotten records there are ${fewer} fewer`);
  }
  if (records.some(({ afterValue }) => afterValue !== null) !== (fewer === 0n)) {
    throw new Wrong("receipt and proofs do not agree whether a record was forgotten or corrected");
  }
}

// ---- proofs

const keyOfRecord = ({ salt, id }) => sha256(framed(utf8("maxrr/commitment/v1/key"), salt, identifierBytes(id)));
const leaf = (key, value) => sha256([0], key, value);
const node = (left, right) => sha256([1], left, right);
const bitOf = (key, depth) => (key[depth >> 3] >> (7 - (depth & 7))) & 1;

async function leadsTo(root, start, key, siblings) {
  let hash = start;
  for (let depth = siblings.length - 1; depth >= 0; depth--) {
    hash = bitOf(key, depth) ? await node(siblings[depth], hash) : await node(hash, siblings[depth]);
  }
  return same(hash, root);
}

async function isPresent({ siblings }, root, key, value) {
  return leadsTo(root, await leaf(key, value), key, siblings);
}

async function isAbsent({ siblings, other }, root, key) {
  if (other === null) return leadsTo(root, new Uint8Array(32), key, siblings);
  if (same(other.key, key)) return false;
  for (let depth = 0; depth < siblings.length; depth++) if (bitOf(other.key, depth) !== bitOf(key, depth)) return false;
  return leadsTo(root, await leaf(other.key, other.value), key, siblings);
}

async function isGone(record, root) {
  const key = await keyOfRecord(record);
  if (record.afterValue === null) return isAbsent(record.after, root, key);
  return !same(record.afterValue, record.value) && isPresent(record.after, root, key, record.afterValue);
}

async function isLogged({ index, size, path }, entry, root) {
  let [position, last, hash] = [index, size - 1n, await sha256([0], entry)];
  for (const beside of path) {
    if (last === 0n) return false;
    if (position & 1n || position === last) {
      hash = await node(beside, hash);
      while (!(position & 1n) && position) [position, last] = [position >> 1n, last >> 1n];
    } else {
      hash = await node(hash, beside);
    }
    [position, last] = [position >> 1n, last >> 1n];
  }
  return last === 0n && same(hash, root);
}

// ---- the log's checkpoint

const noteKeyId = async (name, key) => (await sha256(utf8(`${name}\n`), [1], key.raw)).subarray(0, 4);

async function openCheckpoint(text, origin, keys) {
  if (utf8(text).length > LARGEST_CHECKPOINT) throw new Wrong("the checkpoint is too large to be one");
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text)) throw new Wrong("the checkpoint has control characters");
  const end = text.lastIndexOf("\n\n");
  if (end < 0 || !text.endsWith("\n")) throw new Wrong("the checkpoint has no signatures after an empty line");
  const signed = text.slice(0, end + 1);
  const lines = signed.slice(0, -1).split("\n");
  if (lines.length !== 3 || !/^(0|[1-9][0-9]{0,17})$/.test(lines[1])) {
    throw new Wrong("the checkpoint does not have three lines: the log's name, its size, its root");
  }
  if (lines[0] !== origin) throw new Wrong("the checkpoint is of another log");
  const root = fromBase64(lines[2], "the checkpoint's root", 32);
  const [, name, base64] = /^\u2014 ([^ \n]+) ([^ \n]+)\n$/.exec(text.slice(end + 2)) ?? [];
  if (!name || !NAME.test(name) || !NAME.test(origin)) throw new Wrong("below the checkpoint stands not one signature");
  const content = fromBase64(base64, "the signature of the checkpoint");
  const ids = await Promise.all(keys.map((key) => noteKeyId(origin, key)));
  const named = keys.filter((_, place) => name === origin && same(ids[place], content.subarray(0, 4)));
  const holds = await Promise.all(named.map(({ raw }) => verifies(raw, content.subarray(4), utf8(signed))));
  if (!named.length) throw new Wrong("the checkpoint is not signed by this key");
  const signer = named.find((_, place) => holds[place]);
  if (!signer) throw new Wrong("the signature of the log is not of this checkpoint: it was changed, or is of another key");
  return { size: BigInt(lines[1]), root, signer: signer.id };
}

async function requireKeys(dossier) {
  const ids = dossier.keys.map(({ id }) => id);
  if (!ids.includes(dossier.envelope.key)) throw new Wrong("the receipt names a key that is not here");
  await openEnvelope(dossier.envelope, dossier.keys);
  const { signer } = await openCheckpoint(dossier.checkpoint, dossier.origin, dossier.keys);
  if (ids.some((id) => id !== dossier.envelope.key && id !== signer)) {
    throw new Wrong("nothing here is signed with one of the keys that came with it");
  }
}

// ---- all of it: a list of {name, held, wrong}; held is null where something that a claim rests on does not hold

async function checkDossier(dossier, keys) {
  let [statement, facts, checkpoint] = [null, null, null];
  const found = (value, what) => {
    if (value === null) throw new NotLookedAt(`not looked at: it rests on ${what}`);
    return value;
  };
  const steps = {
    signed: async () => { statement = await openEnvelope(dossier.envelope, keys); },
    receipt: async () => {
      const read = factsOf(found(statement, "the signature"));
      facts = read;
      requireAgrees(dossier, read);
    },
    before: async () => {
      const { commitmentBefore } = found(facts, "the receipt");
      for (const record of dossier.records) {
        if (!(await isPresent(record.before, commitmentBefore, await keyOfRecord(record), record.value))) {
          throw new Wrong(`it is not proved that record ${record.id} was there`);
        }
      }
    },
    after: async () => {
      const { commitmentAfter } = found(facts, "the receipt");
      for (const record of dossier.records) {
        if (!(await isGone(record, commitmentAfter))) throw new Wrong(`it is not proved that record ${record.id} is gone`);
      }
    },
    checkpoint: async () => { checkpoint = await openCheckpoint(dossier.checkpoint, dossier.origin, keys); },
    logged: async () => {
      const { number } = found(facts, "the receipt");
      const { size, root } = found(checkpoint, "the checkpoint");
      const { index } = dossier.inclusion;
      if (index !== number - 1n) throw new Wrong(`the proof is of entry ${index + 1n}, and the receipt is number ${number}`);
      if (dossier.inclusion.size !== size) {
        throw new Wrong(`the proof is for a log of the size ${dossier.inclusion.size}, and this has ${size}`);
      }
      if (!(await isLogged(dossier.inclusion, await sha256(dossier.envelope.payload), root))) {
        throw new Wrong("the proof does not lead from this receipt to the log");
      }
    },
    keys: () => requireKeys(dossier),
  };
  const checks = [];
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      checks.push({ name, held: true, wrong: "" });
    } catch (error) {
      if (!(error instanceof Wrong) && !(error instanceof NotLookedAt)) throw error;
      checks.push({ name, held: error instanceof NotLookedAt ? null : false, wrong: error.message });
    }
  }
  return { checks, said: facts?.said ?? null };
}
