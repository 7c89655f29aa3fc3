//! The messages of an ONNX file, as far as an importer needs them. Comments name the fields as `onnx.proto` does.

use bytes::Bytes;

use super::wire::{Fault, Field, Message};

type Res = Result<(), Fault>;

macro_rules! message {
    ($(#[$doc:meta])* $name:ident, $text:literal { $($number:literal => $field:ident: $type:ty = |$f:ident, $to:ident| $take:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub(super) struct $name { $(pub $field: $type,)* }
        impl Message for $name {
            const NAME: &'static str = $text;
            fn field(&mut self, f: &mut Field<'_>) -> Res {
                match f.number {
                    $($number => { let ($f, $to) = (f, &mut self.$field); $take })*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

message! {
    Model, "the model" {
        7 => graph: Option<Graph> = |f, to| *to = Some(f.message()?);
        8 => opsets: Vec<OpsetId> = |f, to| to.push(f.message()?);
        25 => functions: Vec<Function> = |f, to| to.push(f.message()?);
    }
}

message! {
    OpsetId, "an opset" {
        1 => domain: String = |f, to| *to = f.text()?;
        2 => version: i64 = |f, to| *to = f.int()?;
    }
}

message! {
    Graph, "a graph" {
        1 => nodes: Vec<Node> = |f, to| to.push(f.message()?);
        2 => name: String = |f, to| *to = f.text()?;
        5 => initializers: Vec<Tensor> = |f, to| to.push(f.message()?);
        11 => inputs: Vec<ValueInfo> = |f, to| to.push(f.message()?);
        12 => outputs: Vec<ValueInfo> = |f, to| to.push(f.message()?);
        13 => value_info: Vec<ValueInfo> = |f, to| to.push(f.message()?);
        15 => sparse_initializers: u32 = |f, to| { f.bytes()?; *to += 1 };
    }
}

message! {
    Node, "a node" {
        1 => inputs: Vec<String> = |f, to| to.push(f.text()?);
        2 => outputs: Vec<String> = |f, to| to.push(f.text()?);
        3 => name: String = |f, to| *to = f.text()?;
        4 => op: String = |f, to| *to = f.text()?;
        5 => attributes: Vec<Attribute> = |f, to| to.push(f.message()?);
        7 => domain: String = |f, to| *to = f.text()?;
        8 => overload: String = |f, to| *to = f.text()?;
    }
}

message! {
    Attribute, "an attribute" {
        1 => name: String = |f, to| *to = f.text()?;
        2 => f: f32 = |f, to| *to = f.float()?;
        3 => i: i64 = |f, to| *to = f.int()?;
        4 => s: Bytes = |f, to| *to = f.bytes()?;
        5 => t: Option<Tensor> = |f, to| *to = Some(f.message()?);
        6 => g: Option<Box<Graph>> = |f, to| *to = Some(Box::new(f.message()?));
        7 => floats: Vec<f32> = |f, to| f.floats(to)?;
        8 => ints: Vec<i64> = |f, to| f.ints(to)?;
        9 => strings: Vec<Bytes> = |f, to| to.push(f.bytes()?);
        20 => kind: i32 = |f, to| *to = f.int32()?;
        // ref_attr_name
        21 => refers_to: String = |f, to| *to = f.text()?;
    }
}

message! {
    Tensor, "a tensor" {
        1 => dims: Vec<i64> = |f, to| f.ints(to)?;
        2 => data_type: i32 = |f, to| *to = f.int32()?;
        // segment
        3 => segments: u32 = |f, to| { f.bytes()?; *to += 1 };
        4 => floats: Vec<f32> = |f, to| f.floats(to)?;
        // int32_data
        5 => ints: Vec<i64> = |f, to| f.ints(to)?;
        // string_data
        6 => strings: Vec<Bytes> = |f, to| to.push(f.bytes()?);
        // int64_data
        7 => longs: Vec<i64> = |f, to| f.ints(to)?;
        8 => name: String = |f, to| *to = f.text()?;
        9 => raw: Option<Bytes> = |f, to| *to = Some(f.bytes()?);
        10 => doubles: Vec<f64> = |f, to| f.doubles(to)?;
        // uint64_data
        11 => unsigned: Vec<i64> = |f, to| f.ints(to)?;
        13 => external: Vec<Entry> = |f, to| to.push(f.message()?);
        // data_location: 1 is a file beside the model
        14 => location: i32 = |f, to| *to = f.int32()?;
    }
}

message! {
    Entry, "an entry" {
        1 => key: String = |f, to| *to = f.text()?;
        2 => value: String = |f, to| *to = f.text()?;
    }
}

message! {
    ValueInfo, "a value's description" {
        1 => name: String = |f, to| *to = f.text()?;
        2 => kind: Option<Type> = |f, to| *to = Some(f.message()?);
    }
}

message! {
    Type, "a type" {
        1 => tensor: Option<TensorType> = |f, to| *to = Some(f.message()?);
        4 => sequence: Option<Of> = |f, to| *to = Some(f.message()?);
        5 => map: bool = |f, to| { f.bytes()?; *to = true };
        8 => sparse: bool = |f, to| { f.bytes()?; *to = true };
        9 => optional: Option<Of> = |f, to| *to = Some(f.message()?);
    }
}

message! {
    /// The type of what a sequence or an optional value holds.
    Of, "the type of an element" {
        1 => kind: Option<Box<Type>> = |f, to| *to = Some(Box::new(f.message()?));
    }
}

message! {
    TensorType, "a tensor's type" {
        1 => elem: i32 = |f, to| *to = f.int32()?;
        2 => shape: Option<Shape> = |f, to| *to = Some(f.message()?);
    }
}

message! {
    Shape, "a shape" {
        1 => dims: Vec<Dim> = |f, to| to.push(f.message()?);
    }
}

message! {
    Dim, "a dimension" {
        1 => value: Option<i64> = |f, to| *to = Some(f.int()?);
        2 => param: String = |f, to| *to = f.text()?;
    }
}

message! {
    /// An operation defined in the model by a graph of others.
    Function, "a function" {
        1 => name: String = |f, to| *to = f.text()?;
        4 => inputs: Vec<String> = |f, to| to.push(f.text()?);
        5 => outputs: Vec<String> = |f, to| to.push(f.text()?);
        7 => nodes: Vec<Node> = |f, to| to.push(f.message()?);
        9 => opsets: Vec<OpsetId> = |f, to| to.push(f.message()?);
        10 => domain: String = |f, to| *to = f.text()?;
        // attribute_proto: attributes with defaults
        11 => defaults: Vec<Attribute> = |f, to| to.push(f.message()?);
        13 => overload: String = |f, to| *to = f.text()?;
    }
}
