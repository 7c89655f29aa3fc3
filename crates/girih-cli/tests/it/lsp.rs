//! `girih lsp`, spoken to as an editor does.

use crate::lab;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use lab::{ADD, Lab, err, expect, out};
use serde_json::{Value, json};

const URI: &str = "file:///add.mlir";

/// An editor with one file open.
struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    /// The server's unsolicited messages.
    notices: Vec<Value>,
}

impl Editor {
    fn start(lab: &Lab) -> Editor {
        let mut command = lab.command(&["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Editor { child, to, from, next: 0, notices: vec![] }
    }

    fn open(lab: &Lab, text: &str) -> Editor {
        let mut editor = Editor::start(lab);
        let able = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(able["capabilities"]["positionEncoding"], "utf-16");
        editor.tell("initialized", json!({}));
        let document = json!({ "uri": URI, "languageId": "girih-tile", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor
    }

    fn write(&mut self, message: Value) {
        let body = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the server ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", n)) => length = n.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The whole answer to a request.
    fn asked(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
            self.notices.push(message);
        }
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.asked(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The answer about the place where a text begins, `more` letters on.
    #[track_caller]
    fn at(&mut self, method: &str, text: &str, place: &str, more: usize) -> Value {
        self.ask(&format!("textDocument/{method}"), here(text, place, more))
    }

    /// The diagnostics of the newest version.
    fn diagnostics(&mut self) -> Vec<Value> {
        // An answer comes after earlier messages, and diagnostics are published when there is nothing else to do.
        let last = loop {
            match self.notices.pop() {
                Some(n) => break n,
                None => {
                    let n = self.read();
                    self.notices.push(n);
                }
            }
        };
        assert_eq!(last["method"], "textDocument/publishDiagnostics");
        last["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn end(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.child.wait().unwrap().success());
    }
}

fn position(text: &str, at: usize) -> Value {
    let before = &text[..at];
    let line = before.matches('\n').count();
    json!({ "line": line, "character": before.rsplit('\n').next().unwrap().encode_utf16().count() })
}

fn here(text: &str, place: &str, more: usize) -> Value {
    let at = text.find(place).unwrap_or_else(|| panic!("no {place}")) + more;
    json!({ "textDocument": { "uri": URI }, "position": position(text, at) })
}

/// The text with edits applied.
fn edited(text: &str, edits: &Value) -> String {
    let offset = |p: &Value| {
        let line: usize = text.split_inclusive('\n').take(p["line"].as_u64().unwrap() as usize).map(str::len).sum();
        line + p["character"].as_u64().unwrap() as usize
    };
    let edits = edits.as_array().unwrap().iter();
    let mut edits: Vec<(usize, usize, &str)> = edits
        .map(|e| (offset(&e["range"]["start"]), offset(&e["range"]["end"]), e["newText"].as_str().unwrap()))
        .collect();
    edits.sort();
    let mut out = text.to_string();
    edits.into_iter().rev().for_each(|(from, to, new)| out.replace_range(from..to, new));
    out
}

fn labels(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap()).collect()
}

#[test]
fn errors_come_and_go_as_the_user_types() {
    let lab = Lab::new("lsp-errors");
    let mut editor = Editor::open(&lab, ADD);
    assert_eq!(editor.diagnostics(), [Value::Null; 0]);
    let at = ADD.find("%y rounding").unwrap();
    let change = json!([{ "range": { "start": position(ADD, at), "end": position(ADD, at + 2) }, "text": "%yy" }]);
    let document = json!({ "uri": URI, "version": 2 });
    editor.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": change }));
    let wrong = editor.diagnostics();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0]["message"].as_str().unwrap().contains("the value %yy is not defined here"), "{wrong:?}");
    assert_eq!((wrong[0]["severity"].as_u64(), &wrong[0]["range"]["start"]), (Some(1), &position(ADD, at)));
    // The code is that of `girih check`.
    let file = lab.file("wrong.mlir", &ADD.replace("%y rounding", "%yy rounding"));
    assert!(err(&lab.girih(&["check", &file])).contains(wrong[0]["code"].as_str().unwrap()));
    editor.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [{ "text": ADD }] }));
    assert_eq!(editor.diagnostics(), [Value::Null; 0]);
    editor.end();
}

#[test]
fn hover_shows_the_page_of_an_operation_and_the_type_of_a_value() {
    let lab = Lab::new("lsp-hover");
    let mut editor = Editor::open(&lab, ADD);
    let page = editor.at("hover", ADD, "addf %x", 2);
    let printed = out(&lab.girih(&["ops", "addf"]));
    assert_eq!(page["contents"]["value"].as_str().unwrap().trim(), printed.trim());
    let value = editor.at("hover", ADD, "%z, %in", 1);
    let text = value["contents"]["value"].as_str().unwrap();
    assert!(text.contains("%z : tile<256xf32>") && text.contains("result of `addf`"), "{text}");
    let param = editor.at("hover", ADD, "%n : tile<i32> -> tile<1xi32>", 1);
    assert!(param["contents"]["value"].as_str().unwrap().contains("parameter of `add`"), "{param}");
    assert_eq!(editor.at("hover", ADD, "// c = a", 4), Value::Null);
    editor.end();
}

#[test]
fn values_are_found_and_renamed() {
    let lab = Lab::new("lsp-names");
    let mut editor = Editor::open(&lab, ADD);
    let found = editor.at("definition", ADD, "%z, %in", 1);
    assert_eq!(found["range"]["start"], position(ADD, ADD.find("%z = addf").unwrap()));
    assert_eq!(editor.at("references", ADD, "%z, %in", 1).as_array().unwrap().len(), 2);
    let placeholder = editor.at("prepareRename", ADD, "%z = addf", 0);
    assert_eq!(placeholder["placeholder"], "z");
    let mut ask = here(ADD, "%in = cmpi", 1);
    ask["newName"] = json!("%inside");
    let edits = editor.ask("textDocument/rename", ask.clone())["changes"][URI].clone();
    let renamed = edited(ADD, &edits);
    // It is the same program, with another name in it.
    assert_eq!(renamed.matches("%inside").count(), 4);
    let file = lab.file("renamed.mlir", &renamed);
    expect(&lab.girih(&["check", &file]), 0, "");
    assert_eq!(renamed.replace("%inside", "%in"), ADD);
    for (name, why) in [
        ("1x", "is not a name"),
        ("", "is not a name"),
        ("a b", "is not a name"),
        ("zero", "is defined already, on line 15"),
    ] {
        ask["newName"] = json!(name);
        let answer = editor.asked("textDocument/rename", ask.clone());
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{name}: {answer}");
    }
    editor.end();
}

#[test]
fn completion_knows_operations_attributes_and_values() {
    let lab = Lab::new("lsp-completion");
    let text = ADD.replace(
        "    %t2 = store_ptr_tko",
        "    %new = ad\n    %t3 = addf %x, %y rounding<\n    ma\n    %t2 = store_ptr_tko",
    );
    let mut editor = Editor::open(&lab, &text);
    let after = |place: &str| (text.clone(), place.to_string(), place.len());
    let mut complete = |(text, place, more): (String, String, usize)| editor.at("completion", &text, &place, more);
    let operations = complete(after("%new = ad"));
    assert!(labels(&operations).contains(&"addf") && labels(&operations).contains(&"muli"));
    assert!(labels(&complete(after("\n    ma"))).contains(&"make_token"));
    let attributes = complete(after("%t3 = addf %x, %y ro"));
    assert!(labels(&attributes).iter().any(|l| *l == "nearest_even" || *l == "rounding_mode"), "{attributes}");
    let values = complete((text.clone(), "%x, %y rounding<nearest".into(), 1));
    let names = labels(&values);
    assert!(names.contains(&"%x") && names.contains(&"%a") && !names.contains(&"%t2"), "{names:?}");
    let x = values.as_array().unwrap().iter().find(|i| i["label"] == "%x").unwrap();
    assert_eq!(x["detail"], "tile<256xf32>");
    editor.end();
}

#[test]
fn files_are_formatted_and_shapes_shown() {
    let lab = Lab::new("lsp-format");
    let untidy = ADD.replace("    %z = addf %x, %y rounding", "  %z   = addf %x,%y    rounding");
    let mut editor = Editor::open(&lab, &untidy);
    let edits = editor.ask("textDocument/formatting", json!({ "textDocument": { "uri": URI }, "options": {} }));
    let file = lab.file("untidy.mlir", &untidy);
    expect(&lab.girih(&["fmt", &file]), 0, "");
    assert_eq!(edited(&untidy, &edits), std::fs::read_to_string(&file).unwrap());
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let hints = editor.ask("textDocument/inlayHint", json!({ "textDocument": { "uri": URI }, "range": whole }));
    let at = position(&untidy, untidy.find("%z   =").unwrap() + 2);
    let z = hints.as_array().unwrap().iter().find(|h| h["position"] == at).unwrap();
    assert_eq!(z["label"], ": 256xf32");
    // Parameters and scalars have none.
    assert!(!labels(&hints).contains(&": f32") && hints.as_array().unwrap().iter().all(|h| h["position"]["line"] != 3));
    editor.end();
}

#[test]
fn what_is_not_known_is_refused_and_the_server_goes_on() {
    let lab = Lab::new("lsp-unknown");
    let mut editor = Editor::open(&lab, "no tile program at all %");
    assert!(!editor.diagnostics().is_empty());
    assert_eq!(editor.asked("textDocument/codeLens", json!({}))["error"]["code"], -32601);
    let other = json!({ "textDocument": { "uri": "file:///other" }, "position": { "line": 0, "character": 0 } });
    assert!(editor.asked("textDocument/hover", other)["error"]["message"].as_str().unwrap().contains("is not open"));
    let nowhere = json!({ "textDocument": { "uri": URI }, "position": "here" });
    assert!(editor.asked("textDocument/hover", nowhere)["error"]["message"].as_str().unwrap().contains("no place"));
    let formatting = json!({ "textDocument": { "uri": URI }, "options": {} });
    assert!(editor.asked("textDocument/formatting", formatting)["error"].is_object());
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(editor.asked("textDocument/hover", here(ADD, "addf", 0))["error"]["code"], -32602);
    editor.end();
}

#[test]
fn half_a_message_ends_the_server_with_a_sentence() {
    let lab = Lab::new("lsp-half");
    for half in [
        "Content-Length: 400\r\n\r\n{\"jsonrpc\":",
        "Content-Length: many\r\n\r\n",
        "Content-Length: 99999999999999\r\n\r\n{}",
        "Content-Length: 5\r\n\r\n{{{{{",
        "nonsense",
    ] {
        for opened in [false, true] {
            let mut editor = if opened { Editor::open(&lab, ADD) } else { Editor::start(&lab) };
            editor.to.write_all(half.as_bytes()).unwrap();
            let Editor { to, mut child, mut from, .. } = editor;
            drop(to);
            // Its earlier output stays in order.
            from.read_to_end(&mut vec![]).unwrap();
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(1), "{half:?}: {said}");
            assert!(said.starts_with("girih lsp: the client ") && said.lines().count() == 1, "{half:?}: {said}");
        }
    }
    // A client that goes away without a word.
    let editor = Editor::open(&lab, ADD);
    let Editor { to, mut child, .. } = editor;
    drop(to);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_help_is_a_quick_fix() {
    let lab = Lab::new("lsp-fixes");
    let wrong = ADD.replace("addf %x", "adf %x");
    let mut editor = Editor::open(&lab, &wrong);
    let all = json!({ "start": { "line": 0, "character": 0 }, "end": position(&wrong, wrong.len()) });
    let about = json!({ "uri": URI });
    let asked = json!({ "textDocument": about, "range": all, "context": { "diagnostics": [] } });
    let actions = editor.ask("textDocument/codeAction", asked);
    assert_eq!(actions.as_array().unwrap().len(), 1, "{actions}");
    assert_eq!((&actions[0]["kind"], &actions[0]["isPreferred"]), (&json!("quickfix"), &json!(true)));
    assert_eq!(edited(&wrong, &actions[0]["edit"]["changes"][URI]), ADD);
    // Elsewhere there is none.
    let first = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let elsewhere = json!({ "textDocument": about, "range": first, "context": { "diagnostics": [] } });
    assert_eq!(editor.ask("textDocument/codeAction", elsewhere), json!([]));
    assert!(editor.asked("textDocument/codeAction", json!({ "textDocument": about }))["error"]["message"].is_string());
    editor.end();
}

#[test]
fn functions_are_outlined_and_words_have_meanings() {
    let lab = Lab::new("lsp-symbols");
    let mut editor = Editor::open(&lab, ADD);
    let about = json!({ "textDocument": { "uri": URI } });
    let symbols = editor.ask("textDocument/documentSymbol", about.clone());
    assert_eq!((symbols.as_array().unwrap().len(), &symbols[0]["name"]), (1, &json!("@add")), "{symbols}");
    let data = editor.ask("textDocument/semanticTokens/full", about);
    let data: Vec<usize> = data["data"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let lines: Vec<&str> = ADD.lines().collect();
    let (mut line, mut column, mut words) = (0, 0, vec![]);
    for token in data.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        words.push((&lines[line][column..column + token[2]], token[3], token[4]));
    }
    // A function, a parameter where it is declared and where it is used, an operation, a value, a type.
    for expected in
        [("@add", 0, 0), ("%n", 1, 4), ("%n", 1, 0), ("addf", 0, 2), ("%z", 2, 4), ("%z", 2, 0), ("tile", 3, 2)]
    {
        assert!(words.contains(&expected), "{expected:?} is not in {words:?}");
    }
    editor.end();
}
