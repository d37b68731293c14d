//! A row of an LP file.

use std::fmt::{self, Display, Write};

/// Lines are broken when they get longer: readers have limits.
const LINE: usize = 200;

/// A sum that is being written, in lines that are not too long.
pub(super) struct Terms<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    line: String,
    is_first: bool,
}

impl<'a, 'f> Terms<'a, 'f> {
    pub(super) fn new(out: &'a mut fmt::Formatter<'f>, name: &str) -> Result<Self, fmt::Error> {
        let line = format!(" {name}:");
        Ok(Self {
            out,
            line,
            is_first: true,
        })
    }

    pub(super) fn add(&mut self, factor: i128, variable: impl Display) -> fmt::Result {
        if self.line.len() > LINE {
            writeln!(self.out, "{}", self.line)?;
            self.line.clear();
            self.line.push(' ');
        }
        let sign = match (factor < 0, self.is_first) {
            (true, _) => " -",
            (false, true) => "",
            (false, false) => " +",
        };
        self.is_first = false;
        self.line.push_str(sign);
        match factor.unsigned_abs() {
            1 => write!(self.line, " {variable}"),
            factor => write!(self.line, " {factor} {variable}"),
        }
    }

    pub(super) fn end(mut self, bound: &str) -> fmt::Result {
        if self.is_first {
            self.add(1, "none")?;
        }
        writeln!(self.out, "{}", format!("{} {bound}", self.line).trim_end())
    }
}
