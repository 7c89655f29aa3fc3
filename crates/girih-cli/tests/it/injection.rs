//! The names in a program decide nothing: names that would be C, shell or a terminal's commands are run, compiled,
//! printed and complained about, and nothing of them is executed or reaches the terminal as it is.

use crate::lab;

use std::path::Path;

use lab::{Lab, err, expect, out};

/// A string literal of tile text: every byte by its number.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.bytes().map(|b| format!("\\{b:02X}")).collect::<String>())
}

/// C that makes the file `sign` when the object that holds it is loaded.
fn payload(sign: &str) -> String {
    format!(
        "int creat(const char *, unsigned); __attribute__((constructor)) static void e(void) {{ creat(\"{sign}\", 384); }}"
    )
}

/// Names that end the comments they are in, or go on in the next line, with C behind them.
fn names(sign: &str) -> Vec<String> {
    let c = payload(sign);
    let mut names: Vec<String> =
        ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "*/", "\\\n", "??/\n", "\0\n"]
            .map(|end| format!("k{end}{c}\n//"))
            .to_vec();
    names.extend(
        ["k\\", "k\\ ", "k??/", "\n#include \"/etc/hostname\"\n//", "\n#line 1 \"x\"\n", "$(touch x)", "../../k", ""]
            .map(String::from),
    );
    names
}

fn program(name: &str, argument: &str) -> String {
    let name = literal(name);
    format!(
        "cuda_tile.module @{name} attributes {{producer = {name}}} {{
  entry @{name}(%{argument}: tile<ptr<i32>>, %n: tile<i32>) {{
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    for %i in (%zero to %n, step %one) : tile<i32> {{
      %at = offset %{argument}, %i : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
      %yes = constant <i1: true> : tile<i1>
      assert %yes, {name} : tile<i1>
      %s = store_ptr_tko weak %at, %i : tile<ptr<i32>>, tile<i32> -> token loc({name}:1:2)
    }} loc({name}:1:2)
    return
  }}
}}
"
    )
}

#[test]
fn no_name_is_executed() {
    let lab = Lab::new("injection");
    let sign = lab.path("executed");
    for (i, name) in names(&sign).iter().enumerate() {
        let text = lab.file(&format!("{i}.mlir"), &program(name, "p"));
        let bytecode = lab.path(&format!("{i}.tileirbc"));
        if name.is_empty() {
            continue;
        }
        expect(&lab.girih(&["assemble", &text, "-o", &bytecode]), 0, "");
        for (file, argument) in [(&text, "p"), (&bytecode, "0")] {
            let count = if argument == "p" { "n=i32:4" } else { "1=i32:4" };
            let base = ["run", file, "--arg", &format!("{argument}=zeros:i32[4]"), "--arg", count, "--print", argument];
            for more in [&[][..], &["--check"]] {
                let o = lab.girih(&[&base[..], more].concat());
                expect(&o, 0, "");
                assert!(out(&o).contains("[0, 1, 2, 3]"), "{name:?}: {}", out(&o));
            }
            let c = lab.girih(&["compile", file, "--ir", "c"]);
            expect(&c, 0, "");
            assert!(out(&c).bytes().all(|b| b == b'\n' || (0x20..0x7f).contains(&b)), "{name:?}: {}", out(&c));
        }
        assert!(!Path::new(&sign).exists(), "{name:?} was executed");
    }
}

/// A program says which file its operations come from: it must not make messages show the lines of any file.
#[test]
fn only_files_near_a_program_are_shown() {
    let (lab, elsewhere) = (Lab::new("origins"), Lab::new("origins-elsewhere"));
    let near = lab.file("near.py", "a line that is near\n");
    let far = elsewhere.file("far.py", "a line that is far\n");
    let link = lab.path("link.py");
    std::os::unix::fs::symlink(&far, &link).unwrap();
    let around = format!("{}/../{}/far.py", lab.path(""), elsewhere.0.file_name().unwrap().to_str().unwrap());
    for (origin, line) in [(&near, "that is near"), (&far, ""), (&link, ""), (&around, "")] {
        let text = program("k", "p").replace(&format!("loc({}:1:2)", literal("k")), &format!("loc(\"{origin}\":1:2)"));
        assert!(text.contains(origin.as_str()));
        let file = lab.file("k.mlir", &text);
        let words = ["run", &file, "--device", "eval", "--arg", "p=zeros:i32[4]", "--arg", "n=i32:8"];
        let o = lab.girih(&words);
        assert_ne!(o.status.code(), Some(0));
        let told = err(&o);
        assert!(told.contains(".py"), "{told}");
        assert_eq!(told.contains("a line that is"), !line.is_empty(), "{told}");
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn words_of_c_are_names_as_any_other() {
    let lab = Lab::new("words");
    for word in [
        "INLINE",
        "_Bool",
        "__attribute_",
        "__LINE_",
        "__x86_64__",
        "INT64_MAX",
        "SIZE_MAX",
        "unix",
        "linux",
        "asm",
        "typeof",
        "floordiv",
        "outside",
        "load_half",
        "girih_args",
        "f32x16",
        "i32_m",
        "soft_add",
        "F16",
        "a0",
        "a1",
        "values",
        "block",
    ] {
        let text = lab.file("word.mlir", &program("k", word));
        for more in [&[][..], &["--check"]] {
            let array = format!("{word}=zeros:i32[4]");
            let o =
                lab.girih(&[&["run", &text, "--arg", &array, "--arg", "n=i32:4", "--print", word][..], more].concat());
            expect(&o, 0, "");
            assert!(out(&o).contains("[0, 1, 2, 3]"), "{word}: {}", out(&o));
        }
    }
}

#[test]
fn bytecode_keeps_every_name() {
    let lab = Lab::new("names");
    for name in names("x").iter().filter(|n| !n.is_empty()) {
        let (text, first) = (lab.file("a.mlir", &program(name, "p")), lab.path("a.tileirbc"));
        expect(&lab.girih(&["assemble", &text, "-o", &first]), 0, "");
        let (read, again) = (lab.path("b.mlir"), lab.path("b.tileirbc"));
        let o = lab.girih(&["disassemble", &first]);
        expect(&o, 0, "");
        assert_eq!(obeyed(&out(&o)), None, "{name:?}");
        std::fs::write(&read, &o.stdout).unwrap();
        expect(&lab.girih(&["assemble", &read, "-o", &again]), 0, "");
        assert_eq!(out(&lab.girih(&["disassemble", &again])), out(&o), "{name:?}");
        // No argument of a command holds a zero.
        if !name.contains('\0') {
            let o = lab.girih(&["run", &again, "--entry", name, "--arg", "0=zeros:i32[4]", "--arg", "1=i32:0"]);
            expect(&o, 0, "");
        }
    }
}

#[test]
fn what_two_values_are_called_is_not_mixed_up_when_they_print() {
    let lab = Lab::new("printed");
    let text = lab.file(
        "print.mlir",
        "entry @k(%a1: tile<f32>) {
  %two = constant <f32: 2.0> : tile<f32>
  %t = print_tko \"%f %f\\n\", %a1, %two : tile<f32>, tile<f32> -> token
}
",
    );
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &text, "--arg", "a1=f32:7", "--device", device]);
        expect(&o, 0, "");
        assert!(out(&o).starts_with("7.000000 2.000000"), "{device}: {}", out(&o));
    }
}

/// A character that a terminal would obey, or would not show.
fn obeyed(text: &str) -> Option<char> {
    text.chars().find(|&c| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c))
}

#[test]
fn messages_show_what_a_terminal_would_obey() {
    let lab = Lab::new("terminal");
    let wild = "\u{1b}[2J\u{9b}31m\u{7}\u{202e}k\u{7f}\r";
    let fails = |name: &str| program(name, "p").replace("<i1: true>", "<i1: false>");
    let file = lab.file(&format!("{wild}.mlir"), &fails(wild));
    let broken = lab.file("broken.mlir", &format!("entry @{}() {{ %x = nothing }} // {wild}", literal(wild)));
    let model = lab.file("model.json", &format!("{{\"format\": \"{}\"}}", "\\u001b[2J\\u009b"));
    let commands: &[(&[&str], i32)] = &[
        (&["run", &file, "--arg", "p=zeros:i32[4]", "--arg", "n=i32:4"], 3),
        (&["run", &file, "--arg", "p=zeros:i32[4]", "--arg", "n=i32:4", "--device", "eval"], 3),
        (&["run", &file, "--arg", &format!("{wild}=1")], 1),
        (&["run", &file, "--entry", wild], 1),
        (&["run", &file, "--print", wild, "--arg", "p=zeros:i32[4]", "--arg", "n=i32:0"], 1),
        (&["run", wild], 1),
        (&["check", &broken], 1),
        (&["run", &model], 1),
        (&["run", "-c", &format!("torch.relu({wild})")], 1),
        (&["ops", wild], 1),
        (&["rules", wild], 1),
    ];
    for (command, code) in commands {
        let o = lab.girih(command);
        assert_eq!(o.status.code(), Some(*code), "{command:?}: {}", err(&o));
        assert!(!err(&o).is_empty());
        assert_eq!(obeyed(&err(&o)), None, "{command:?}: {:?}", err(&o));
    }
}
