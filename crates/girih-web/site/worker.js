// The compiler in a worker: questions arrive as messages {id, question}, answers leave as {id, answer} or {id, failure}. A kernel in
// Python is traced by the package's own front end first, in Pyodide, which is loaded for the first such kernel.
const here = (file) => new URL(file, import.meta.url).href;
const bytesOf = async (file) => {
  const response = await fetch(here(file));
  if (!response.ok) throw new Error(file + " is missing: " + response.status);
  return response.arrayBuffer();
};
const ready = bytesOf("girih.wasm").then(async (bytes) => (await WebAssembly.instantiate(bytes, {})).instance.exports);

function ask(girih, question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  // Memory that grows is another buffer: its address comes first.
  const room = girih.reserve(bytes.length);
  new Uint8Array(girih.memory.buffer, room, bytes.length).set(bytes);
  const at = girih.answer();
  const length = new DataView(girih.memory.buffer).getUint32(at, true);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(girih.memory.buffer, at + 4, length)));
}

let python = null;
async function load() {
  let loader;
  try {
    loader = await import("./pyodide/pyodide.mjs");
  } catch {
    throw new Error("kernels in Python need Pyodide, which this site was built without");
  }
  const made = await loader.loadPyodide({ indexURL: here("pyodide/"), stdout: () => {}, stderr: () => {} });
  made.unpackArchive(await bytesOf("girih.zip"), "zip", { extractDir: "/girih" });
  const helper = new TextDecoder().decode(await bytesOf("kernels.py"));
  made.runPython("import sys; sys.path.insert(0, '/girih')");
  made.runPython(helper, { filename: "kernels.py" });
  // Texts of others are traced from here on: they load nothing.
  for (const name of ["fetch", "importScripts", "XMLHttpRequest", "WebSocket", "EventSource", "indexedDB", "caches"]) {
    Object.defineProperty(self, name, { value: undefined });
  }
  return made.globals.get("traced");
}

// The question about a kernel in Python as one about its Tile IR; or, where it has none, the answer.
async function traced({ python: file, text, ...rest }) {
  const trace = await (python ??= load());
  const { problems, kernels } = JSON.parse(trace(text));
  const place = (p) => ({ line: p.line, column: p.column, end: [p.line, Math.max(p.end_column, p.column)] });
  const notes = problems.map((p) => ({ severity: p.severity, code: p.code, message: p.message, help: p.help, labels: [], ...place(p) }));
  const kernel = kernels[0];
  if (!kernel || problems.some((p) => p.severity === "error")) {
    if (!kernel && !notes.length) {
      const message = "the text has no kernel that could be traced: a function under @girih.jit, of an imported girih";
      notes.push({ severity: "error", code: "", message, labels: [] });
    }
    return { answer: { notes } };
  }
  return { question: { ...rest, text: kernel.text, written: { file, text } } };
}

self.onmessage = async ({ data: { id, question } }) => {
  try {
    const { answer, question: asked } = question.python ? await traced(question) : { question };
    postMessage({ id, answer: answer || ask(await ready, asked) });
  } catch (error) {
    postMessage({ id, failure: String((error && error.message) || error) });
  }
};
