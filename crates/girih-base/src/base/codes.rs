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
            /// The meaning of the code, one sentence.
            pub fn meaning(self) -> &'static str { match self { $(Code::$name => $doc,)* } }
        }
    };
}

codes! {
    // 01: reading text
    Syntax = "E0101", "The text does not follow the grammar.";
    UnknownOp = "E0102", "The operation is unknown.";
    UndefinedValue = "E0103", "A value is used where it is not defined.";
    Redefinition = "E0104", "A name is defined twice.";
    TooLarge = "E0105", "The text nests too deeply, or something in it is too large.";
    BadLiteral = "E0106", "A number, word or string is not valid where it is used.";
    NoModule = "E0107", "The file has no module, or a statement is outside any module.";
    ResultCount = "E0108", "The number of names differs from the number of results.";
    UnknownType = "E0109", "The type is unknown, or not allowed there.";
    UnknownWord = "E0110", "The word is not one of those allowed there.";
    UnknownAlias = "E0111", "An alias is used that the file does not define.";
    BadShape = "E0112", "The shape of a constant or view does not fit its type.";
    OperandCount = "E0113", "The number of operands, types or regions is wrong.";
    MissingAttribute = "E0114", "The generic form of an operation lacks a required attribute.";
    PythonKernel = "E0115", "A kernel in a Python script or in Rust cannot be compiled, whatever its arguments are.";
    UnsupportedPython = "E0116", "A kernel uses Python that kernels do not support.";
    ShapeMismatch = "E0117", "The shapes of tiles do not fit together, or the operation.";
    NotConstant = "E0118", "A value must be known when the kernel is compiled, but a run computes it.";
    UnknownName = "E0119", "A name or an attribute in a kernel is unknown.";
    BadCall = "E0120", "The arguments of a call do not fit the function.";
    OutsideObject = "E0121", "A kernel uses an object or a function of Python that it cannot read or call.";
    ControlFlow = "E0122", "A variable changes its type in a branch or a loop, or has no value on some path.";
    BadCondition = "E0123", "A condition is not one truth value, or Python reads it in an unexpected way.";
    BadAddress = "E0124", "An address is used as a number, or a number as an address.";
    StaticFailure = "E0125", "An assertion or an exception of the kernel itself stops its compilation.";
    BadInteger = "E0126", "An index, an offset, a bound or an extent is not an integer that is allowed there.";
    NoSource = "E0127", "The source of a kernel cannot be read.";
    BadOperand = "E0128", "A value in a kernel is of another kind than its place takes: no number, tile or tuple.";

    // 02: types and the verifier
    TypeMismatch = "E0201", "Two types that must agree do not.";
    BadDimension = "E0202", "A tile dimension is not a positive power of two.";
    TileTooLarge = "E0203", "A tile holds too many elements.";
    BadElementType = "E0204", "An operation does not take this element type.";
    BadRank = "E0205", "A tile has the wrong rank for its place.";
    BadAttribute = "E0206", "An attribute is missing or out of range.";
    BadRounding = "E0207", "A rounding mode or flush_to_zero is not allowed here.";
    BadOrdering = "E0208", "A memory ordering or scope is not allowed here.";
    BadView = "E0209", "A view breaks a rule.";
    BadTerminator = "E0210", "A region ends in or contains the wrong terminator.";
    ImpureBody = "E0211", "The body of a reduction, scan or generation has side effects.";
    BadSymbol = "E0212", "A name of the module is defined twice, or not at all.";
    BadConstant = "E0213", "Constant elements do not fit their type.";
    BadProduct = "E0214", "The shapes of a matrix product do not fit.";
    FormatMismatch = "E0215", "A print format does not fit its values.";
    BadAssumption = "E0216", "An assumption cannot be made of its value.";
    BadHint = "E0217", "Optimization hints are malformed.";
    BadArity = "E0218", "An operation has the wrong number of operands, results or regions.";
    Recursion = "E0219", "Functions call each other in a circle, or expand to too many calls.";
    BadLocation = "E0220", "A debug location is in the wrong scope.";

    // 03: loop, tile and kernel IR
    MalformedIr = "E0301", "A printed IR that was read back is malformed.";
    UnknownIrName = "E0302", "A name in a printed IR is not defined, defined twice, or of the wrong kind.";
    InvalidIr = "E0303", "A loop or tile kernel breaks a rule of its stage.";
    CannotLower = "E0304", "A program cannot be lowered for this target.";
    BadSchedule = "E0305", "A schedule cannot be read, or a step of it is not legal.";
    InternalBug = "E0390", "A pass of the compiler went wrong: a bug of Girih.";

    // 04: launches and arguments
    BadArgument = "E0401", "An argument does not fit its parameter.";
    BufferTooSmall = "E0402", "A buffer is too small for what the kernel provably touches.";
    BadGrid = "E0403", "A grid or a block is out of range.";
    NoEntry = "E0404", "The program has no entry of that name, or none was chosen.";

    // 05: the machine: compiler, cache, files
    CompilerFailed = "E0501", "The system C compiler failed.";
    NoCompiler = "E0502", "No C compiler was found.";
    File = "E0503", "A file cannot be read, written or understood.";
    NotLoadable = "E0504", "A compiled kernel cannot be loaded.";
    CacheUnusable = "W0505", "The cache of compiled kernels cannot be used.";
    NoDevice = "E0506", "The machine has no driver or no GPU to run on.";
    DeviceFailed = "E0507", "The driver or the GPU failed.";

    // 06: what ends a run, or would end every run
    AssertFailed = "E0601", "An assertion of the kernel failed.";
    StepNotPositive = "E0602", "A for loop's step is not positive.";
    OutOfBounds = "E0603", "An access lies outside every region of memory.";
    UndefinedUsed = "E0604", "An undefined value was stored, printed, branched on or used as an address.";
    IndexOutside = "E0605", "An index lies outside a view or a tile.";
    FalseAssumption = "E0606", "An assumption the program states is false.";
    LibraryNeeded = "E0607", "An operation needs an external library, so the program cannot run.";
    BadFormat = "E0608", "A print format does not fit its values.";
    Interrupted = "E0609", "The run was interrupted.";
    OutOfFuel = "E0610", "The kernel did not end within the operations allowed.";
    NotVerified = "E0611", "A malformed module was run without having been verified.";
    OutOfMemory = "E0612", "Evaluating the kernel needs more memory than there is.";
    Simulated = "E0613", "The simulator found a race or another fault in what the threads of a GPU do.";

    // 07: bytecode
    NotBytecode = "E0701", "The file is not bytecode, or its version is unknown.";
    Truncated = "E0702", "The bytecode ends too early, or declares more than it holds.";
    BadSection = "E0703", "A section of bytecode is missing, repeated or misplaced, or has bytes after its end.";
    UnknownTag = "E0704", "The version has no section, operation, type, attribute or word with that number.";
    BadReference = "E0705", "A number refers to something that does not exist, or to something of another kind.";
    BadEncoding = "E0706", "A number, a flag or a string is not written as the format requires.";
    WrongCount = "E0707", "The number of results, operands, regions or locations is wrong.";
    BytecodeTooLarge = "E0708", "Bytecode nests too deeply, or something in it is too large.";
    NotInVersion = "E0710", "The chosen version of bytecode cannot express part of the program.";
    NotInBytecode = "E0711", "Part of the program cannot be expressed in any version of bytecode.";

    // 08: models
    BadModel = "E0801", "A model file is not ONNX, is cut short, or contradicts itself.";
    UnsupportedOperator = "E0802", "A model holds operators, versions or types that are not supported.";
    ModelShape = "E0803", "The operands of a model's operator do not fit it.";
    ExternalData = "E0804", "A file with a model's weights is missing, too short, or lies outside the model's folder.";
    BadExpression = "E0805", "A one-line expression is not valid, or uses something that is not supported.";
    ModelInput = "E0806", "An input of a model is missing, or has the wrong name, type, rank or extent.";
    BadGraph = "E0807", "A printed tensor graph that was read back is malformed, or breaks a rule of its stage.";

    // 09: warnings and notes
    OldSpelling = "W0901", "An older spelling was accepted.";
    DataRace = "W0902", "Two blocks access the same memory with nothing to order them.";
    NoTokenPath = "W0903", "Two accesses of one block overlap with no token path between them.";
    Extension = "W0904", "An operation of older documents that the public dialect does not have.";
    IgnoredAttribute = "W0905", "An attribute that has no meaning there was ignored.";
    ReducedShape = "W0906", "A reduction's result has the shape of reducing another dimension.";
    ConstantIndexOutside = "W0907", "A constant index lies outside its tile.";
    UnspecifiedElements = "W0908", "Elements that the specification leaves unspecified are used.";
    NotChecked = "W0909", "A kernel in a Python script was not checked: only a run of the script knows what it depends on.";
    NotWritten = "W0910", "No block of a checked launch wrote some elements of an output.";
    UnusedValue = "W0911", "The value of an expression in a Python kernel is not used.";
    NoEffect = "W0912", "A Python kernel stores nothing and prints nothing, so that a launch has no effect.";
    UnreadAxis = "W0913", "A grid has several blocks along an axis that the kernel does not read, so that they do the same.";
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn codes_are_unique_and_ascend() {
        let numbers: Vec<&str> = Code::ALL.iter().map(|c| &c.text()[1..]).collect();
        let wrong: Vec<_> = numbers.windows(2).filter(|w| w[0] >= w[1]).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
