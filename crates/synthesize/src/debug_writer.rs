//! Writes `debug.cbor`, one context after the other.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use ciborium_io::Write as _;
use ciborium_ll::{Encoder, Header, simple};

use super::context_fields::{Value, fields};
use super::contexts::Context;
use super::plan::Plan;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> io::Result<()> {
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut writer = Writer {
        plan,
        encoder: Encoder::from(file),
        places: Places::new(plan),
    };
    writer.encoder.push(Header::Map(Some(2)))?;
    writer.encoder.text("contexts", None)?;
    writer.encoder.push(Header::Array(None))?;
    writer.contexts()?;
    writer.encoder.push(Header::Break)?;
    writer.string_table()?;
    writer.encoder.flush()
}

/// Indices of source locations, behind the names in the string table.
struct Places {
    strings: Vec<&'static str>,
    first: u64,
}

impl Places {
    fn new(plan: &Plan) -> Self {
        Self {
            strings: vec![
                "/opt/src/poplibs/lib/poplin/MatMul.cpp",
                "matMulGrouped",
                "/opt/src/poplibs/lib/popops/ElementWise.cpp",
                "generateMappedOperations",
                "/opt/src/model/build.cpp",
                "growOp",
            ],
            first: plan.contexts.strings.len() as u64,
        }
    }

    fn location(&self, context: &Context) -> Value {
        let pair = u64::from(context.op.wrapping_add(context.name) % 3);
        Value::Map(vec![
            ("fileName", Value::Uint(self.first + 2 * pair)),
            ("functionName", Value::Uint(self.first + 2 * pair + 1)),
            (
                "lineNumber",
                Value::Uint(20 + u64::from(context.name % 900)),
            ),
        ])
    }
}

struct Writer<'a> {
    plan: &'a Plan,
    encoder: Encoder<BufWriter<File>>,
    places: Places,
}

impl Writer<'_> {
    /// Block after block: the leaves as they were made, then the rest from the
    /// innermost outwards. The framework's own contexts live longest.
    fn contexts(&mut self) -> io::Result<()> {
        let contexts = &self.plan.contexts;
        let mut first = 0;
        let mut blocks: Vec<_> = contexts
            .blocks
            .iter()
            .map(|&end| std::mem::replace(&mut first, end)..end)
            .collect();
        blocks.rotate_left(1);
        // The contexts of tensors and streams, which may have operations as parents.
        let framework = blocks.len() - 1;
        blocks[..framework].rotate_right(1);
        for block in blocks {
            let leaf = |id: &usize| contexts.list[*id].body.is_leaf();
            for id in block.clone().filter(leaf) {
                self.context(id)?;
            }
            for id in block.rev().filter(|id| !leaf(id)) {
                self.context(id)?;
            }
        }
        Ok(())
    }

    fn context(&mut self, index: usize) -> io::Result<()> {
        let plan = self.plan;
        let context = &plan.contexts.list[index];
        let mut fields = fields(plan, context, index as u32 + 1);
        fields.push(("location", self.places.location(context)));
        self.value(&Value::Map(fields))
    }

    /// Keys stand in alphabetical order, as the writer of real files has them.
    fn value(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Uint(number) => self.encoder.push(Header::Positive(*number)),
            Value::Bool(flag) => self.encoder.push(Header::Simple(if *flag {
                simple::TRUE
            } else {
                simple::FALSE
            })),
            Value::Text(text) => self.encoder.text(text, None),
            Value::List(items) => {
                self.encoder.push(Header::Array(Some(items.len())))?;
                items.iter().try_for_each(|item| self.value(item))
            }
            Value::Map(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|field| field.0);
                self.encoder.push(Header::Map(Some(sorted.len())))?;
                sorted.into_iter().try_for_each(|(key, value)| {
                    self.encoder.text(key, None)?;
                    self.value(value)
                })
            }
        }
    }

    fn string_table(&mut self) -> io::Result<()> {
        let names = &self.plan.contexts.strings;
        let count = names.len() + self.places.strings.len();
        self.encoder.text("stringTable", None)?;
        self.encoder.push(Header::Array(Some(count)))?;
        for name in names {
            self.encoder.text(name, None)?;
        }
        for place in &self.places.strings {
            self.encoder.text(place, None)?;
        }
        Ok(())
    }
}
