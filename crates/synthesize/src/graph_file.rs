//! The forward pass of a real model, as `graphs/write.py` writes it down.
//!
//! ```text
//! ops         [[scope, type, module, parameters, inputs, outputs], ...] in order
//! tensors     elements of each activation, by its number
//! parameters  elements of each parameter, by its name
//! tied        [[name, ...], ...]: names that are one parameter
//! blocks      by operation, the block of the model that it is in, or null; optional
//! ```
//!
//! An input of -1 is no activation: alone it is an input of the model, beside others a
//! constant. An operation that writes one of its inputs has the number in both lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

use anyhow::Context as _;
use flate2::read::GzDecoder;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct ForwardPass {
    pub ops: Vec<Operation>,
    pub tensors: Vec<u64>,
    pub parameters: BTreeMap<String, u64>,
    #[serde(default)]
    pub tied: Vec<Vec<String>>,
    /// By operation, the block to which it belongs; without blocks, each operation is a block.
    #[serde(default)]
    pub blocks: Option<Vec<Option<String>>>,
    /// If the model is called several times: what [`positions`](Self::positions) returns.
    #[serde(skip)]
    called: Option<(Vec<String>, Vec<u32>)>,
}

/// An operation: scope, type, module, parameters, inputs, outputs.
#[derive(Debug, Clone, Deserialize)]
pub struct Operation(
    pub String,
    pub String,
    pub String,
    pub Vec<String>,
    pub Vec<i64>,
    pub Vec<usize>,
);

impl Operation {
    pub fn name(&self) -> String {
        match self.0.is_empty() {
            true => self.1.clone(),
            false => format!("{}/{}", self.0, self.1),
        }
    }

    pub fn reads(&self) -> BTreeSet<usize> {
        let inputs = self.4.iter();
        inputs.filter_map(|&input| input.try_into().ok()).collect()
    }
}

impl ForwardPass {
    /// Reads a file, which is compressed if its name ends in `.gz`.
    ///
    /// # Errors
    /// If the file cannot be read; the error names it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let about = || format!("cannot read the graph {}", path.display());
        let file = BufReader::new(File::open(path).with_context(about)?);
        let reader: Box<dyn Read> = match path.extension().is_some_and(|end| end == "gz") {
            true => Box::new(GzDecoder::new(file)),
            false => Box::new(file),
        };
        serde_json::from_reader(reader).with_context(about)
    }

    /// Returns the names of the blocks in their order, and the position of each operation: 0 before
    /// the first block, 1 and up for the blocks, the last position after the last block. Operations
    /// between two blocks belong to either, with the cut where the smallest flow of data is; those
    /// between two operations of one block, such as an activation function that all blocks share,
    /// belong to the block.
    pub fn positions(&self) -> (Vec<String>, Vec<u32>) {
        if let Some(called) = &self.called {
            return called.clone();
        }
        let count = self.ops.len();
        let Some(blocks) = &self.blocks else {
            let names = self.ops[1..count - 1].iter().map(Operation::name);
            return (names.collect(), (0..count as u32).collect());
        };
        let inside: Vec<usize> = (0..count).filter(|&op| blocks[op].is_some()).collect();
        let mut names = Vec::new();
        let mut positions = vec![0; count];
        let mut before: Option<usize> = None;
        for &op in &inside {
            let block = blocks[op].clone().unwrap_or_default();
            let open = before.map_or(0, |before| before + 1);
            let goes_on = before.is_some_and(|before| blocks[before] == blocks[op]);
            let begin = match before {
                Some(_) if goes_on => open,
                Some(_) => self.least_flow(open..op + 1),
                None => op,
            };
            positions[open..begin].fill(names.len() as u32);
            if !goes_on {
                names.push(block);
            }
            positions[begin..=op].fill(names.len() as u32);
            before = Some(op);
        }
        let end = before.map_or(count, |op| op + 1);
        positions[end..].fill(names.len() as u32 + 1);
        (names, positions)
    }

    /// Returns the forward pass of a program that calls the model several times, one call after the
    /// other. If `is_chained`, a call gets the result of the one before it in place of the first
    /// input, as the next token; otherwise each has inputs of its own.
    pub fn called(self, calls: usize, is_chained: bool) -> Self {
        let (names, mut positions) = self.positions();
        let mut all = self.clone();
        for _ in 1..calls {
            let mut next = None;
            if is_chained {
                let made = all.ops.last().and_then(|last| last.5.first().copied());
                let token = all.tensors.len();
                all.tensors.push(1);
                all.ops.push(Operation(
                    String::new(),
                    "ArgMax".to_owned(),
                    String::new(),
                    Vec::new(),
                    made.into_iter().map(|tensor| tensor as i64).collect(),
                    vec![token],
                ));
                positions.push(names.len() as u32 + 1);
                all.blocks.iter_mut().for_each(|blocks| blocks.push(None));
                next = Some(token as i64);
            }
            if let (Some(blocks), Some(own)) = (&mut all.blocks, &self.blocks) {
                blocks.extend_from_slice(own);
            }
            let base = all.tensors.len();
            for (operation, position) in self.ops.iter().zip(&self.positions().1) {
                let mut operation = operation.clone();
                for input in &mut operation.4 {
                    *input = match *input {
                        -1 => next.take().unwrap_or(-1),
                        tensor => tensor + base as i64,
                    };
                }
                operation.5.iter_mut().for_each(|output| *output += base);
                all.ops.push(operation);
                positions.push(*position);
            }
            all.tensors.extend(&self.tensors);
        }
        Self {
            called: Some((names, positions)),
            ..all
        }
    }

    /// Returns the first of these operations before which a cut has the fewest elements of
    /// activations to pass on.
    fn least_flow(&self, ops: Range<usize>) -> usize {
        let mut last = HashMap::new();
        for (number, operation) in self.ops.iter().enumerate() {
            let tensors = operation.reads().into_iter().chain(operation.5.clone());
            last.extend(tensors.map(|tensor| (tensor, number)));
        }
        let handed_on = |cut: usize| -> u64 {
            let made = self.ops[..cut].iter().flat_map(|op| &op.5);
            let made: BTreeSet<usize> = made.copied().collect();
            let needed = made.into_iter().filter(|tensor| last[tensor] >= cut);
            needed.map(|tensor| self.tensors[tensor]).sum()
        };
        let begin = ops.start;
        ops.min_by_key(|&cut| handed_on(cut)).unwrap_or(begin)
    }

    /// Returns the one name by which a parameter is known.
    pub fn name_of_parameter<'a>(&'a self, name: &'a str) -> &'a str {
        let tied = |names: &&Vec<String>| names.iter().any(|tied| tied == name);
        let first = self.tied.iter().find(tied).and_then(|names| names.first());
        first.map_or(name, String::as_str)
    }

    /// Returns the number of elements of a parameter of an operation. A buffer that is not listed
    /// has the elements of the smallest parameter beside it, as the statistics of a norm have.
    pub fn elements_of_parameter(&self, operation: &Operation, name: &str) -> u64 {
        let beside = operation.3.iter();
        let beside = beside.filter_map(|other| self.parameters.get(self.name_of_parameter(other)));
        let smallest = || beside.copied().min().unwrap_or(1);
        let listed = self.parameters.get(self.name_of_parameter(name));
        listed.copied().unwrap_or_else(smallest)
    }

    /// Returns whether training changes a parameter; it changes no buffer.
    pub fn is_trained(&self, name: &str) -> bool {
        self.parameters.contains_key(self.name_of_parameter(name)) && !name.contains("/moving_")
    }
}
