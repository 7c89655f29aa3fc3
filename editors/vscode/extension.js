// Starts `girih lsp` and passes messages between it and VS Code, without any package beside VS Code's own: the extension can be
// packed and installed where there is no network.
"use strict";
const vscode = require("vscode");
const { Client } = require("./client");

let client;

exports.activate = (context) => {
  const path = () => vscode.workspace.getConfiguration("girih").get("path") || "girih";
  const selector = { language: "girih-tile" };
  // Hints, hover and quick fixes are for the kernels of Python scripts too; colours and outlines of these are other extensions'.
  const both = [selector, { language: "python", scheme: "file" }];
  client = new Client(path());
  const problems = vscode.languages.createDiagnosticCollection("girih");
  client.onFailure = (why) => vscode.window.showWarningMessage(`Girih: ${why}. Set girih.path to the command.`);

  const place = (p) => new vscode.Position(p.line, p.character);
  const range = (r) => new vscode.Range(place(r.start), place(r.end));
  const markdown = (m) => new vscode.MarkdownString(m.value);
  const document = (d) => ({ uri: d.uri.toString() });
  const at = (d, p) => ({ textDocument: document(d), position: { line: p.line, character: p.character } });

  client.on("textDocument/publishDiagnostics", ({ uri, diagnostics }) => {
    problems.set(vscode.Uri.parse(uri), diagnostics.map((d) => {
      const made = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
      made.code = d.code;
      made.source = d.source;
      made.relatedInformation = d.relatedInformation.map((r) => new vscode.DiagnosticRelatedInformation(
        new vscode.Location(vscode.Uri.parse(r.location.uri), range(r.location.range)), r.message));
      return made;
    }));
  });

  const mine = (d) => d.languageId === selector.language || (d.languageId === "python" && d.uri.scheme === "file");
  const open = (d) => mine(d) && client.notify("textDocument/didOpen", {
    textDocument: { ...document(d), languageId: d.languageId, version: d.version, text: d.getText() },
  });
  vscode.workspace.textDocuments.forEach(open);
  context.subscriptions.push(
    problems,
    vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidCloseTextDocument((d) => mine(d) && client.notify("textDocument/didClose", { textDocument: document(d) })),
    vscode.workspace.onDidChangeTextDocument(({ document: d, contentChanges }) => mine(d) && contentChanges.length &&
      client.notify("textDocument/didChange", {
        textDocument: { ...document(d), version: d.version },
        contentChanges: contentChanges.map((c) => ({ range: c.range, text: c.text })),
      })),
    vscode.languages.registerHoverProvider(both, {
      async provideHover(d, p) {
        const found = await client.request("textDocument/hover", at(d, p));
        return found && new vscode.Hover(markdown(found.contents), range(found.range));
      },
    }),
    vscode.languages.registerCompletionItemProvider(selector, {
      async provideCompletionItems(d, p) {
        const items = await client.request("textDocument/completion", at(d, p));
        return (items || []).map((i) => {
          const item = new vscode.CompletionItem(i.label, i.kind - 1);
          item.detail = i.detail;
          item.documentation = i.documentation && markdown(i.documentation);
          item.filterText = i.filterText;
          item.insertText = i.textEdit.newText;
          item.range = range(i.textEdit.range);
          return item;
        });
      },
    }, "%", "@"),
    vscode.languages.registerDefinitionProvider(selector, {
      async provideDefinition(d, p) {
        const found = await client.request("textDocument/definition", at(d, p));
        return found && new vscode.Location(vscode.Uri.parse(found.uri), range(found.range));
      },
    }),
    vscode.languages.registerReferenceProvider(selector, {
      async provideReferences(d, p) {
        const all = await client.request("textDocument/references", at(d, p));
        return (all || []).map((l) => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range)));
      },
    }),
    vscode.languages.registerRenameProvider(selector, {
      async prepareRename(d, p) {
        const found = await client.request("textDocument/prepareRename", at(d, p));
        if (!found) throw new Error("Only values can be renamed.");
        return { range: range(found.range), placeholder: found.placeholder };
      },
      async provideRenameEdits(d, p, newName) {
        const { changes } = await client.request("textDocument/rename", { ...at(d, p), newName });
        const edit = new vscode.WorkspaceEdit();
        for (const [uri, edits] of Object.entries(changes)) {
          for (const e of edits) edit.replace(vscode.Uri.parse(uri), range(e.range), e.newText);
        }
        return edit;
      },
    }),
    vscode.languages.registerDocumentFormattingEditProvider(selector, {
      async provideDocumentFormattingEdits(d) {
        const edits = await client.request("textDocument/formatting", { textDocument: document(d), options: {} });
        return (edits || []).map((e) => vscode.TextEdit.replace(range(e.range), e.newText));
      },
    }),
    vscode.languages.registerInlayHintsProvider(both, {
      async provideInlayHints(d, r) {
        const all = await client.request("textDocument/inlayHint", { textDocument: document(d), range: r });
        return (all || []).map((h) => new vscode.InlayHint(place(h.position), h.label, h.kind));
      },
    }),
    vscode.languages.registerCodeActionsProvider(both, {
      async provideCodeActions(d, r) {
        const all = await client.request("textDocument/codeAction", { textDocument: document(d), range: r, context: { diagnostics: [] } });
        return (all || []).map((a) => {
          const action = new vscode.CodeAction(a.title, vscode.CodeActionKind.QuickFix);
          action.isPreferred = a.isPreferred;
          action.edit = new vscode.WorkspaceEdit();
          for (const [uri, edits] of Object.entries(a.edit.changes)) {
            for (const e of edits) action.edit.replace(vscode.Uri.parse(uri), range(e.range), e.newText);
          }
          return action;
        });
      },
    }, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
    vscode.languages.registerDocumentSymbolProvider(selector, {
      async provideDocumentSymbols(d) {
        const all = await client.request("textDocument/documentSymbol", { textDocument: document(d) });
        return (all || []).map((s) => new vscode.DocumentSymbol(s.name, s.detail, s.kind - 1, range(s.range), range(s.selectionRange)));
      },
    }),
    vscode.commands.registerCommand("girih.explain", () => {
      const file = vscode.window.activeTextEditor?.document.fileName;
      if (!file) return;
      const terminal = vscode.window.createTerminal({ name: "Girih", shellPath: path(), shellArgs: ["explain", file, "--serve", "0"] });
      terminal.show();
    }),
  );
  client.ready.then(({ capabilities }) => {
    const { tokenTypes, tokenModifiers } = capabilities.semanticTokensProvider.legend;
    context.subscriptions.push(vscode.languages.registerDocumentSemanticTokensProvider(selector, {
      async provideDocumentSemanticTokens(d) {
        const found = await client.request("textDocument/semanticTokens/full", { textDocument: document(d) });
        return found && new vscode.SemanticTokens(new Uint32Array(found.data));
      },
    }, new vscode.SemanticTokensLegend(tokenTypes, tokenModifiers)));
  }, () => {});
};

exports.deactivate = () => client && client.stop();
