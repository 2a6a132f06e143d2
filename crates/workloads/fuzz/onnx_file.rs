//! Small ONNX files, made field by field of the public `onnx.proto`.

use super::wire::{Item, Message};

pub const FLOAT: i64 = 1;
pub const INT8: i64 = 3;
pub const INT64: i64 = 7;

/// An attribute of a node.
pub enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
    Text(&'a str),
    Tensor(Message),
}

/// A node.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[(&str, Attribute<'_>)]) -> Message {
    let attributes = attributes.iter().map(|(name, value)| {
        let attribute = Message::default().with(1, *name);
        match value {
            Attribute::Int(i) => attribute.with(3, *i).with(20, 2),
            Attribute::Ints(list) => attribute.with_all(8, list.iter().copied()).with(20, 7),
            Attribute::Float(x) => attribute.with(2, *x).with(20, 1),
            Attribute::Text(text) => attribute.with(4, *text).with(20, 3),
            Attribute::Tensor(tensor) => attribute.with(5, tensor.clone()).with(20, 4),
        }
    });
    let node = Message::default().with_all(1, inputs.iter().copied()).with_all(2, outputs.iter().copied());
    node.with(4, op).with_all(5, attributes)
}

/// A constant without values, as a weight kept elsewhere.
pub fn weight(name: &str, dims: &[i64], data_type: i64) -> Message {
    Message::default().with_all(1, dims.iter().copied()).with(2, data_type).with(8, name)
}

/// A constant list of whole numbers.
pub fn list(name: &str, values: &[i64]) -> Message {
    weight(name, &[values.len() as i64], INT64).with_all(7, values.iter().copied())
}

/// The name and type of a tensor; a dimension is a number or a name.
pub fn info(name: &str, dims: &[Item], data_type: i64) -> Message {
    let dim = |d: &Item| match d {
        Item::Varint(_) => Message::default().with(1, d.clone()),
        _ => Message::default().with(2, d.clone()),
    };
    let shape = Message::default().with_all(1, dims.iter().map(dim));
    let tensor = Message::default().with(1, data_type).with(2, shape);
    Message::default().with(1, name).with(2, Message::default().with(1, tensor))
}

/// A tensor of fixed shape.
pub fn fixed(name: &str, dims: &[i64], data_type: i64) -> Message {
    info(name, &dims.iter().map(|&d| d.into()).collect::<Vec<_>>(), data_type)
}

/// What a model is made of.
#[derive(Default)]
pub struct Model {
    pub nodes: Vec<Message>,
    pub weights: Vec<Message>,
    pub inputs: Vec<Message>,
    pub outputs: Vec<Message>,
    pub opset: i64,
}

impl Model {
    pub fn encode(&self) -> Vec<u8> {
        let graph = Message::default()
            .with_all(1, self.nodes.iter().cloned())
            .with(2, "test")
            .with_all(5, self.weights.iter().cloned())
            .with_all(11, self.inputs.iter().cloned())
            .with_all(12, self.outputs.iter().cloned());
        let opset = Message::default().with(2, self.opset);
        Message::default().with(1, 8).with(7, graph).with(8, opset).encode()
    }
}
