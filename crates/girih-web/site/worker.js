// The compiler in a worker: questions arrive as messages {id, question}, answers leave as {id, answer} or {id, failure}.
"use strict";
const ready = fetch("girih.wasm").then(async (response) => {
  if (!response.ok) throw new Error("girih.wasm is missing: " + response.status);
  const module = await WebAssembly.compile(await response.arrayBuffer());
  return (await WebAssembly.instantiate(module, {})).exports;
});

function ask(girih, question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  // Memory that grows is another buffer: its address comes first.
  const room = girih.reserve(bytes.length);
  new Uint8Array(girih.memory.buffer, room, bytes.length).set(bytes);
  const at = girih.answer();
  const length = new DataView(girih.memory.buffer).getUint32(at, true);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(girih.memory.buffer, at + 4, length)));
}

onmessage = async ({ data: { id, question } }) => {
  try {
    postMessage({ id, answer: ask(await ready, question) });
  } catch (error) {
    postMessage({ id, failure: String(error && error.message || error) });
  }
};
