// A client of the Language Server Protocol over a process's standard input and output.
"use strict";
const { spawn } = require("child_process");

class Client {
  constructor(path) {
    this.next = 1;
    this.waiting = new Map();
    this.handlers = new Map();
    this.bytes = Buffer.alloc(0);
    this.onFailure = () => {};
    this.server = spawn(path, ["lsp"], { stdio: ["pipe", "pipe", "ignore"] });
    this.server.on("error", (error) => this.fail(`${path} does not start: ${error.message}`));
    this.server.on("exit", (code) => this.stopped || this.fail(`${path} lsp ended with code ${code}`));
    this.server.stdin.on("error", () => {});
    this.server.stdout.on("data", (data) => this.read(data));
    const capabilities = { general: { positionEncodings: ["utf-16"] } };
    this.ready = this.send("initialize", { processId: process.pid, rootUri: null, capabilities })
      .then((able) => {
        this.write({ method: "initialized", params: {} });
        return able;
      });
    this.ready.catch(() => {});
  }

  on(method, handler) { this.handlers.set(method, handler); }

  async request(method, params) {
    await this.ready;
    return this.send(method, params);
  }

  notify(method, params) { this.ready.then(() => this.write({ method, params }), () => {}); }

  send(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.write({ id, method, params });
    });
  }

  write(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.server.stdin.write(body);
  }

  read(data) {
    this.bytes = Buffer.concat([this.bytes, data]);
    for (;;) {
      const head = this.bytes.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = /Content-Length: (\d+)/i.exec(this.bytes.toString("ascii", 0, head));
      const from = head + 4, to = from + Number(length ? length[1] : 0);
      if (this.bytes.length < to) return;
      const message = JSON.parse(this.bytes.toString("utf8", from, to));
      this.bytes = this.bytes.subarray(to);
      this.take(message);
    }
  }

  take(message) {
    const asked = this.waiting.get(message.id);
    if (message.method) {
      const handler = this.handlers.get(message.method);
      if (handler) handler(message.params);
    } else if (asked) {
      this.waiting.delete(message.id);
      if (message.error) asked.reject(new Error(message.error.message));
      else asked.resolve(message.result);
    }
  }

  fail(why) {
    for (const { reject } of this.waiting.values()) reject(new Error(why));
    this.waiting.clear();
    this.onFailure(why);
  }

  async stop() {
    this.stopped = true;
    await this.send("shutdown").catch(() => {});
    this.write({ method: "exit" });
  }
}

module.exports = { Client };
