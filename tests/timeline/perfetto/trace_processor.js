// Loads traces in Perfetto's trace processor, one after the other, runs queries of each, and prints a
// JSON array: for each trace an array with the rows of each query.
//
//   node trace_processor.js WEB_DIST TRACE SQL... [-- TRACE SQL...]...
//
// To start the processor takes 2 s, and to load a small trace some milliseconds.
// WEB_DIST is a folder of Perfetto's web page, with engine_bundle.js and trace_processor*.wasm. The
// bundle expects to be a web worker, so a context is made that looks like one. It is spoken to in
// TraceProcessorRpcStream messages: a trace in pieces, its end, and queries.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, ...words] = process.argv.slice(2);
const kAppend = 1, kFinalize = 2, kQuery = 3, kReset = 9;

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

/** The varint at `at`, and where it ends; null where it is not whole. */
function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; at < buffer.length; shift += 7n) {
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
  return null;
}

/** The fields of a message, as pairs of number and value. */
function readFields(buffer) {
  const fields = [];
  for (let at = 0; at < buffer.length;) {
    let key, value;
    [key, at] = readVarint(buffer, at);
    switch (Number(key & 7n)) {
      case 0:
        [value, at] = readVarint(buffer, at);
        break;
      case 1:
        value = buffer.subarray(at, at += 8);
        break;
      case 2: {
        let size;
        [size, at] = readVarint(buffer, at);
        value = buffer.subarray(at, at += Number(size));
        break;
      }
      case 5:
        value = buffer.subarray(at, at += 4);
        break;
      default:
        throw new Error(`wire type ${key & 7n}`);
    }
    fields.push([Number(key >> 3n), value]);
  }
  return fields;
}

/** A context that looks like a web worker whose files are in `folder`. */
function worker() {
  const read = (name) => {
    const file = fs.readFileSync(path.join(folder, path.basename(String(name))));
    return file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
  };
  const self = {
    console: {log() {}, warn() {}, info() {}, error: console.error},
    setTimeout, clearTimeout, queueMicrotask, performance, URL, TextDecoder, TextEncoder,
    WebAssembly, Uint8Array, Promise, Error, TypeError, RangeError, crypto: globalThis.crypto,
    location: {href: 'http://localhost/engine_bundle.js'},
    WorkerGlobalScope: class {},
    importScripts() {},
    XMLHttpRequest: class {
      open(_method, name) { this.name = name; }
      send() {
        this.response = read(this.name);
        this.status = 200;
        if (this.onload) this.onload();
      }
    },
    fetch: async (name) =>
      new Response(read(name), {headers: {'content-type': 'application/wasm'}}),
  };
  self.self = self.globalThis = self;
  vm.createContext(self);
  vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), self);
  return self;
}

/** Rows of a query, from the cells that its batches tell. */
function rowsOf(batches) {
  const columns = [], cells = [];
  for (const fields of batches) {
    for (const [field, value] of fields) {
      if (field === 1) columns.push(value.toString());
      if (field === 2 && value.length) throw new Error(value.toString());
      if (field === 3) cells.push(...cellsOf(value));
    }
  }
  const rows = [];
  for (let at = 0; at + columns.length <= cells.length && columns.length; at += columns.length) {
    rows.push(Object.fromEntries(columns.map((name, i) => [name, cells[at + i]])));
  }
  return rows;
}

function cellsOf(batch) {
  const kinds = [], integers = [], floats = [], strings = [];
  for (const [field, value] of readFields(batch)) {
    const packed = Buffer.isBuffer(value);
    if (field === 1) kinds.push(...(packed ? value : [Number(value)]));
    if (field === 2 && !packed) integers.push(BigInt.asIntN(64, value));
    if (field === 2 && packed) {
      for (let at = 0; at < value.length;) {
        let one;
        [one, at] = readVarint(value, at);
        integers.push(BigInt.asIntN(64, one));
      }
    }
    if (field === 3) {
      for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    }
    if (field === 5) strings.push(...value.toString().split('\0'));
  }
  return kinds.map((kind) => {
    switch (kind) {
      case 1: return null;
      case 2: return Number(integers.shift());
      case 3: return floats.shift();
      case 4: return strings.shift();
      default: throw new Error(`a cell of kind ${kind}`);
    }
  });
}

/** Resolves once the processor runs: it takes messages from then on. */
async function start(self) {
  const port = {onmessage: null, postMessage: null};
  let pending = Buffer.alloc(0), heard = () => {};
  port.postMessage = (data) => {
    pending = Buffer.concat([pending, Buffer.from(data)]);
    for (;;) {
      const key = readVarint(pending, 0);
      const size = key && readVarint(pending, key[1]);
      if (!size || pending.length < size[1] + Number(size[0])) return;
      const end = size[1] + Number(size[0]);
      const message = pending.subarray(size[1], end);
      pending = pending.subarray(end);
      heard(readFields(message));
    }
  };
  let waits = 0;
  while (!self.onmessage) {
    if (++waits > 3000) throw new Error('the trace processor does not start');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  self.onmessage({data: port});
  let sequence = 0;
  return (kind, payload = Buffer.alloc(0)) => {
    const answers = [];
    heard = (fields) => answers.push(fields);
    const message = Buffer.concat([number(1, ++sequence), number(2, kind), payload]);
    port.onmessage({data: new Uint8Array(bytes(1, message))});
    for (const fields of answers) {
      for (const [field, value] of fields) {
        if (field === 5) throw new Error(value.toString());
        if (field === 201) {
          for (const [inner, text] of readFields(value)) {
            if (inner === 2) throw new Error(text.toString());
          }
        }
      }
    }
    return answers;
  };
}

/** The rows of each query of one trace. */
function load(send, trace, queries) {
  const file = fs.readFileSync(trace);
  for (let at = 0; at < file.length; at += 16 << 20) {
    send(kAppend, bytes(101, file.subarray(at, at + (16 << 20))));
  }
  send(kFinalize);
  return queries.map((query) => {
    const answers = send(kQuery, bytes(103, bytes(1, Buffer.from(query))));
    const batches = [];
    for (const fields of answers) {
      for (const [field, value] of fields) {
        if (field === 203) batches.push(readFields(value));
      }
    }
    return rowsOf(batches);
  });
}

async function main() {
  const send = await start(worker());
  const jobs = [[]];
  for (const word of words) {
    if (word === '--') jobs.push([]);
    else jobs.at(-1).push(word);
  }
  const results = jobs.map(([trace, ...queries], i) => {
    if (i) send(kReset);
    return load(send, trace, queries);
  });
  process.stdout.write(JSON.stringify(results) + '\n', () => process.exit(0));
}

main().catch((error) => {
  console.error(`trace_processor.js: ${error.message}`);
  process.exit(1);
});
