//! A network as shape inference and lowering see it: tensors by index, nodes in an order in which
//! everything is provided before it is read.

use super::error::{NodeLabel, OnnxError, OnnxNotice, Problem};
use super::proto::{GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto};
use super::tensor::{DataType, Shape, Tensor};
use indexmap::IndexMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A tensor of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TensorIx(pub usize);

/// What the file says of a tensor that a node provides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    pub shape: Shape,
    pub data_type: DataType,
}

/// A node with its tensors resolved.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub proto: &'a NodeProto,
    pub label: NodeLabel,
    /// `None` where an optional input is absent.
    pub inputs: Vec<Option<TensorIx>>,
    pub outputs: Vec<Option<TensorIx>>,
}

/// The network before its shapes are known.
#[derive(Debug)]
pub(super) struct Network<'a> {
    /// Inputs and initializers; `None` for what a node provides.
    pub given: Vec<Option<Tensor>>,
    /// Shapes in the file of what nodes provide, where they are complete.
    pub declared: Vec<Option<Declared>>,
    /// Nodes in an order in which all inputs are provided before.
    pub nodes: Vec<Node<'a>>,
    pub outputs: Vec<TensorIx>,
    /// The version of the standard operator set.
    pub opset: i64,
    pub notices: Vec<OnnxNotice>,
}

impl<'a> Network<'a> {
    /// Resolves the names of a model.
    pub fn new(model: &'a ModelProto, dims: &BTreeMap<String, u64>) -> Result<Self, OnnxError> {
        let graph = model.graph.as_ref().filter(|g| !g.node.is_empty()).ok_or(OnnxError::NoGraph)?;
        let standard = model.opset_import.iter().find(|o| is_standard(&o.domain));
        let mut reader = Reader { dims, known: IndexMap::new(), named_dims: BTreeSet::new(), notices: Vec::new() };
        reader.initializers(graph)?;
        reader.inputs(graph)?;
        let nodes = reader.nodes(graph)?;
        let output = |o: &'a ValueInfoProto| match reader.known.get_index_of(o.name.as_str()) {
            Some(ix) => Ok(TensorIx(ix)),
            None => Err(OnnxError::UnknownOutput { tensor: o.name.clone() }),
        };
        let outputs = graph.output.iter().map(output).collect::<Result<_, _>>()?;
        let declared = reader.declared(graph);
        let nodes = in_order(nodes, &reader.known)?;
        let opset = standard.map_or(0, |o| o.version);
        let notices = reader.notices;
        let given = reader.known.into_values().collect();
        Ok(Self { given, declared, nodes, outputs, opset, notices })
    }
}

/// True for the domain of the standard operators.
pub(super) fn is_standard(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

struct Reader<'a, 'd> {
    dims: &'d BTreeMap<String, u64>,
    known: IndexMap<&'a str, Option<Tensor>>,
    /// Names of dimensions that inputs have.
    named_dims: BTreeSet<&'a str>,
    notices: Vec<OnnxNotice>,
}

impl<'a> Reader<'a, '_> {
    fn initializers(&mut self, graph: &'a GraphProto) -> Result<(), OnnxError> {
        for proto in &graph.initializer {
            let fail = |problem| OnnxError::Tensor { tensor: proto.name.clone(), problem };
            self.known.insert(&proto.name, Some(Tensor::from_proto(proto).map_err(fail)?));
        }
        Ok(())
    }

    fn inputs(&mut self, graph: &'a GraphProto) -> Result<(), OnnxError> {
        for info in &graph.input {
            // Old models list their initializers among the inputs.
            if !self.known.contains_key(info.name.as_str()) {
                let tensor = self.input(info)?;
                self.known.insert(&info.name, Some(tensor));
            }
        }
        match self.dims.keys().find(|name| !self.named_dims.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let known: Vec<_> = self.named_dims.iter().copied().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(OnnxError::UnknownDim { name: name.clone(), known })
            }
        }
    }

    fn input(&mut self, info: &'a ValueInfoProto) -> Result<Tensor, OnnxError> {
        let missing = || OnnxError::MissingShape { tensor: info.name.clone() };
        let tensor = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).ok_or_else(missing)?;
        let proto = tensor.shape.as_ref().ok_or_else(missing)?;
        let mut dims = Vec::with_capacity(proto.dim.len());
        for (axis, dim) in proto.dim.iter().enumerate() {
            let name = dim.dim_param.as_deref().filter(|n| !n.is_empty());
            self.named_dims.extend(name);
            let given = name.and_then(|n| self.dims.get(n)).copied();
            // Exporters write 0 or -1 for a dimension that they do not know.
            let extent = given.or(dim.dim_value.and_then(|v| u64::try_from(v).ok())).filter(|&v| v > 0);
            if extent.is_none() {
                let (tensor, name) = (info.name.clone(), name.map(str::to_owned));
                self.notices.push(OnnxNotice::DimDefaulted { tensor, axis, name });
            }
            dims.push(extent.unwrap_or(1));
        }
        let shape = Shape::new(dims).map_err(|problem| OnnxError::Tensor { tensor: info.name.clone(), problem })?;
        Ok(Tensor { shape, data_type: DataType(tensor.elem_type), value: None, constant: false })
    }

    fn nodes(&mut self, graph: &'a GraphProto) -> Result<Vec<Node<'a>>, OnnxError> {
        let label = |index: usize, proto: &NodeProto| {
            let op = match is_standard(&proto.domain) {
                true => proto.op_type.clone(),
                false => format!("{}.{}", proto.domain, proto.op_type),
            };
            NodeLabel { index, op, name: proto.name.clone() }
        };
        let mut nodes = Vec::with_capacity(graph.node.len());
        for (index, proto) in graph.node.iter().enumerate() {
            let mut outputs = Vec::with_capacity(proto.output.len());
            for name in &proto.output {
                if name.is_empty() {
                    outputs.push(None);
                } else if self.known.contains_key(name.as_str()) {
                    return Err(OnnxError::DuplicateTensor { node: label(index, proto), tensor: name.clone() });
                } else {
                    outputs.push(Some(TensorIx(self.known.insert_full(name, None).0)));
                }
            }
            nodes.push(Node { proto, label: label(index, proto), inputs: Vec::new(), outputs });
        }
        for node in &mut nodes {
            let find = |name: &String| match self.known.get_index_of(name.as_str()) {
                _ if name.is_empty() => Ok(None),
                Some(ix) => Ok(Some(TensorIx(ix))),
                None => Err(OnnxError::UnknownTensor { node: node.label.clone(), tensor: name.clone() }),
            };
            node.inputs = node.proto.input.iter().map(find).collect::<Result<_, _>>()?;
        }
        Ok(nodes)
    }

    /// Complete shapes that the file declares for what nodes provide.
    fn declared(&self, graph: &GraphProto) -> Vec<Option<Declared>> {
        let mut declared = vec![None; self.known.len()];
        for info in graph.value_info.iter().chain(&graph.output) {
            if let (Some(ix), Some(shape)) = (self.known.get_index_of(info.name.as_str()), &info.r#type) {
                declared[ix] = self.complete(shape).or_else(|| declared[ix].take());
            }
        }
        declared
    }

    fn complete(&self, info: &TypeProto) -> Option<Declared> {
        let tensor = info.tensor_type.as_ref()?;
        let extent = |dim: &super::proto::DimensionProto| {
            let named = dim.dim_param.as_ref().and_then(|n| self.dims.get(n)).copied();
            named.or(dim.dim_value.and_then(|v| u64::try_from(v).ok())).filter(|&v| v > 0)
        };
        let dims = tensor.shape.as_ref()?.dim.iter().map(extent).collect::<Option<Vec<_>>>()?;
        Some(Declared { shape: Shape::new(dims).ok()?, data_type: DataType(tensor.elem_type) })
    }
}

/// Kahn's algorithm, the smallest index first: files that are in order already stay as they are.
fn in_order<'a>(nodes: Vec<Node<'a>>, known: &IndexMap<&'a str, Option<Tensor>>) -> Result<Vec<Node<'a>>, OnnxError> {
    let mut provider = vec![None; known.len()];
    for (i, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|t| provider[t.0] = Some(i));
    }
    let mut readers = vec![Vec::new(); nodes.len()];
    let mut waiting = vec![0usize; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        for &p in node.inputs.iter().flatten().filter_map(|t| provider[t.0].as_ref()) {
            readers[p].push(i);
            waiting[i] += 1;
        }
    }
    let mut ready: BinaryHeap<_> = (0..nodes.len()).filter(|&i| waiting[i] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &r in &readers[i] {
            waiting[r] -= 1;
            if waiting[r] == 0 {
                ready.push(Reverse(r));
            }
        }
    }
    if order.len() < nodes.len() {
        return Err(cycle(&nodes, &provider, &waiting, known));
    }
    let mut slots: Vec<_> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| slots[i].take()).collect())
}

/// Follows providers that never became ready until a node repeats: that one is on a cycle.
fn cycle(
    nodes: &[Node<'_>],
    provider: &[Option<usize>],
    waiting: &[usize],
    known: &IndexMap<&str, Option<Tensor>>,
) -> OnnxError {
    let stuck = |i: usize| {
        nodes[i].inputs.iter().flatten().find_map(|&t| provider[t.0].filter(|&p| waiting[p] > 0).map(|p| (t, p)))
    };
    let mut at = waiting.iter().position(|&w| w > 0).unwrap_or(0);
    let mut seen = vec![false; nodes.len()];
    let mut tensor = TensorIx(0);
    while !std::mem::replace(&mut seen[at], true) {
        if let Some((t, p)) = stuck(at) {
            (tensor, at) = (t, p);
        }
    }
    if let Some((t, _)) = stuck(at) {
        tensor = t;
    }
    let name = known.get_index(tensor.0).map_or("", |k| k.0);
    OnnxError::Cycle { node: nodes[at].label.clone(), tensor: name.to_owned() }
}

/// Wraps a problem of one operator with its place.
pub(super) fn at(node: &Node<'_>, problem: Problem) -> OnnxError {
    let tensor = node.proto.output.first().cloned().unwrap_or_default();
    OnnxError::Operator { node: node.label.clone(), tensor, problem: Box::new(problem) }
}
