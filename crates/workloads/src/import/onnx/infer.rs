//! Shape inference: walks the network once and says, for each tensor that must be computed, how.

use super::error::{OnnxError, OnnxNotice, Problem};
use super::kernel::{Call, Kernel, Output, Vector, same, whole};
use super::network::{Network, Node, TensorIx, at, is_standard};
use super::operators::operator;
use super::tensor::{Shape, Tensor};
use indexmap::IndexMap;

/// One tensor to compute.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The inputs of the node, under the places by which the kernel names them.
    pub inputs: Vec<Option<TensorIx>>,
    pub output: TensorIx,
    pub kernel: Kernel,
}

/// A network with all shapes known.
#[derive(Debug)]
pub(super) struct Program {
    pub tensors: Vec<Tensor>,
    /// What is to be computed, in an order in which it can be.
    pub tasks: Vec<Task>,
    pub outputs: Vec<TensorIx>,
    pub notices: Vec<OnnxNotice>,
}

/// Infers all shapes.
pub(super) fn infer(network: Network<'_>) -> Result<Program, OnnxError> {
    let mut read = vec![false; network.given.len()];
    let readers = network.nodes.iter().flat_map(|n| n.inputs.iter().flatten());
    readers.chain(&network.outputs).for_each(|t| read[t.0] = true);
    let mut walk = Walk {
        tensors: network.given.clone(),
        network: &network,
        read,
        tasks: Vec::new(),
        generic: IndexMap::new(),
        folded: 0,
        differing: None,
    };
    for node in &network.nodes {
        walk.node(node)?;
    }
    let Walk { tensors, tasks, generic, folded, differing, .. } = walk;
    let mut notices = network.notices.clone();
    notices.extend(generic.into_values());
    notices.extend((folded > 0).then_some(OnnxNotice::Folded { count: folded }));
    notices.extend(differing);
    // Every tensor is given or provided by a node, and every node has been walked.
    let tensors = tensors.into_iter().collect::<Option<_>>().ok_or(OnnxError::NoGraph)?;
    Ok(Program { tensors, tasks, outputs: network.outputs, notices })
}

struct Walk<'a> {
    network: &'a Network<'a>,
    tensors: Vec<Option<Tensor>>,
    /// True for tensors that a node or the world outside reads.
    read: Vec<bool>,
    tasks: Vec<Task>,
    generic: IndexMap<String, OnnxNotice>,
    folded: usize,
    differing: Option<OnnxNotice>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node<'_>) -> Result<(), OnnxError> {
        let infer = operator(&node.proto.op_type).filter(|_| is_standard(&node.proto.domain));
        let inputs = node.inputs.iter().map(|i| i.and_then(|t| self.tensors[t.0].as_ref())).collect();
        let call = Call { proto: node.proto, inputs, opset: self.network.opset };
        let constant = !call.inputs.is_empty() && call.inputs.iter().flatten().all(|t| t.constant);
        let known = infer.map(|infer| infer(&call)).transpose().map_err(|p| at(node, p))?;
        let (foldable, outputs) = match known {
            Some(outputs) => (constant, self.completed(node, outputs)?),
            None => (false, self.generic(node)?),
        };
        let folded = |o: &Output| foldable || o.value.is_some() || o.kernel == Kernel::Constant;
        let computed = outputs.iter().any(|o| o.kernel != Kernel::Constant);
        self.folded += usize::from(computed && outputs.iter().all(folded));
        for (place, (output, &tensor)) in outputs.into_iter().zip(&node.outputs).enumerate() {
            let Some(tensor) = tensor else { continue };
            let constant = folded(&output);
            let Output { shape, data_type, value, kernel } = output;
            self.compare(node, place, &shape);
            // The first output is work in any case, the others where somebody looks at them.
            if !constant && (place == 0 || self.read[tensor.0]) {
                self.tasks.push(Task { inputs: node.inputs.clone(), output: tensor, kernel });
            }
            self.tensors[tensor.0] = Some(Tensor { shape, data_type, value, constant });
        }
        Ok(())
    }

    /// The outputs of an operator of the set, and of what else the node names, as of any operator.
    fn completed(&mut self, node: &Node<'_>, mut outputs: Vec<Output>) -> Result<Vec<Output>, OnnxError> {
        for place in outputs.len()..node.outputs.len() {
            outputs.push(self.generic_output(node, place).map_err(|p| at(node, p))?.0);
        }
        Ok(outputs)
    }

    /// The outputs of an operator outside the set.
    fn generic(&mut self, node: &Node<'_>) -> Result<Vec<Output>, OnnxError> {
        let mut assumed = 0;
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for place in 0..node.outputs.len() {
            let (output, guess) = self.generic_output(node, place).map_err(|p| at(node, p))?;
            assumed += usize::from(guess);
            outputs.push(output);
        }
        let first = || OnnxNotice::Generic {
            op: node.label.op.clone(),
            count: 0,
            first: node.label.clone(),
            shapes_assumed: 0,
        };
        if let OnnxNotice::Generic { count, shapes_assumed, .. } =
            self.generic.entry(node.label.op.clone()).or_insert_with(first)
        {
            *count += 1;
            *shapes_assumed += assumed;
        }
        Ok(outputs)
    }

    /// A vector op that reads, of each input, the boxes of the output where the shapes are equal,
    /// and everything otherwise. The shape is the declared one or that of the first input; the flag
    /// says that it is the latter.
    fn generic_output(&self, node: &Node<'_>, place: usize) -> Result<(Output, bool), Problem> {
        let inputs = || node.inputs.iter().enumerate().filter_map(|(i, t)| Some((i, self.tensors[(*t)?.0].as_ref()?)));
        let declared = node.outputs[place].and_then(|t| self.network.declared[t.0].as_ref());
        let first = inputs().next();
        let (shape, data_type) = match (declared, &first) {
            (Some(d), _) => (d.shape.clone(), d.data_type),
            (None, Some((_, t))) => (t.shape.clone(), t.data_type),
            (None, None) => return Err(Problem::NoShape),
        };
        let map = |t: &Tensor| if t.shape == shape { same(shape.rank()) } else { whole(t.shape.rank()) };
        let reads = inputs().map(|(i, t)| (i, map(t))).collect();
        let name = node.proto.op_type.chars().take(40).collect::<String>().to_ascii_uppercase();
        let name = if matches!(name.as_str(), "" | "ALLOC" | "FREE" | "COPY_IN") { format!("OP_{name}") } else { name };
        let kernel = Kernel::Vector(Vector { name, reads, stats: None });
        Ok((Output::new(shape, data_type, kernel), declared.is_none()))
    }

    /// Notes a declared shape that is not the inferred one.
    fn compare(&mut self, node: &Node<'_>, place: usize, inferred: &Shape) {
        let declared = node.outputs[place].and_then(|t| self.network.declared[t.0].as_ref());
        let Some(declared) = declared.filter(|d| d.shape != *inferred) else { return };
        match &mut self.differing {
            Some(OnnxNotice::ShapeDiffers { more, .. }) => *more += 1,
            _ => {
                let (tensor, declared) = (node.proto.output[place].clone(), declared.shape.clone());
                self.differing =
                    Some(OnnxNotice::ShapeDiffers { tensor, declared, inferred: inferred.clone(), more: 0 });
            }
        }
    }
}
