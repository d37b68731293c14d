//! Writes `debug.cbor`, one context after the other.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use ciborium::{Value, into_writer};
use serde::Serialize;

use super::context_fields::{fields, map};
use super::contexts::Context;
use super::plan::Plan;

/// Headers of CBOR: a map of two entries, an array without a length, and its end.
const MAP_OF_TWO: u8 = 0xa2;
const ARRAY: u8 = 0x9f;
const BREAK: u8 = 0xff;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> io::Result<()> {
    let mut writer = Writer {
        plan,
        file: BufWriter::with_capacity(1 << 20, File::create(path)?),
    };
    writer.file.write_all(&[MAP_OF_TWO])?;
    writer.value("contexts")?;
    writer.file.write_all(&[ARRAY])?;
    for index in (0..plan.contexts.list.len()).rev() {
        writer.context(index)?;
    }
    writer.file.write_all(&[BREAK])?;
    let names = plan.contexts.strings.iter().map(String::as_str);
    writer.value("stringTable")?;
    writer.value(&names.chain(LOCATIONS).collect::<Vec<_>>())?;
    writer.file.flush()
}

/// Files and functions of source locations, which follow the names in the string table.
const LOCATIONS: [&str; 6] = [
    "/opt/src/poplibs/lib/poplin/MatMul.cpp",
    "matMulGrouped",
    "/opt/src/poplibs/lib/popops/ElementWise.cpp",
    "generateMappedOperations",
    "/opt/src/model/build.cpp",
    "growOp",
];

fn location(plan: &Plan, context: &Context) -> Value {
    let pair: u64 = (context.op.wrapping_add(context.name) % 3).into();
    let file = plan.contexts.strings.len() as u64 + 2 * pair;
    map([
        ("fileName", Value::from(file)),
        ("functionName", Value::from(file + 1)),
        ("lineNumber", Value::from(20 + context.name % 900)),
    ])
}

struct Writer<'a> {
    plan: &'a Plan,
    file: BufWriter<File>,
}

impl Writer<'_> {
    fn context(&mut self, index: usize) -> io::Result<()> {
        let plan = self.plan;
        let context = &plan.contexts.list[index];
        let mut fields = fields(plan, context, index as u32 + 1);
        fields.push(("location".into(), location(plan, context)));
        self.value(&map(fields))
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        into_writer(value, &mut self.file).map_err(io::Error::other)
    }
}
