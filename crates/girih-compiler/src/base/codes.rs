//! The table of diagnostic codes. A code has one line here, one meaning, and one test file.

macro_rules! codes {
    ($($name:ident = $text:literal, $doc:literal;)*) => {
        /// The code of a diagnostic.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $(#[doc = $doc] $name,)* }
        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];
            /// The code as printed, `E0101`.
            pub fn text(self) -> &'static str { match self { $(Code::$name => $text,)* } }
            /// What the code means, one sentence.
            pub fn meaning(self) -> &'static str { match self { $(Code::$name => $doc,)* } }
        }
    };
}

codes! {
    // 01: reading text
    Syntax = "E0101", "The text does not follow the grammar.";

    // 02: types and the verifier
    TypeMismatch = "E0201", "Two types that must agree do not.";

    // 03: loop, tile and kernel IR
    MalformedIr = "E0301", "A printed IR that was read back is malformed.";
    UnknownIrName = "E0302", "A name in a printed IR is not defined, defined twice, or of the wrong kind.";
    InvalidIr = "E0303", "A loop or tile kernel breaks a rule of its stage.";

    // 04: launches and arguments
    BadArgument = "E0401", "An argument does not fit its parameter.";

    // 05: the machine: compiler, cache, files
    CompilerFailed = "E0501", "The system C compiler failed.";

    // 06: traps while running
    AssertFailed = "E0601", "An assertion of the kernel failed.";

    // 09: warnings and notes
    OldSpelling = "W0901", "An older spelling was accepted.";
}
