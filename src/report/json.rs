//! The stages as JSON, for programs.

use super::Split;
use std::io::{self, Write};

/// Writes an array with one object for each stage.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_stages(split: &Split, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &split.stages)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::split::tests::split;

    #[test]
    fn an_object_for_each_stage() {
        let mut out = Vec::new();
        write_stages(&split(), &mut out).unwrap();
        let stages: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "layer_from": null,
            "layer_to": "0",
            "layers": [null, "0"],
            "mem": {
                "total_mem": 600_448, "max_tile_mem": 600_024, "variables": 600_400,
                "vertex_code": 0, "vertex_state": 0, "exchange_code": 0, "control_code": 48, "overhead": 0,
            },
            "max_tile": 0,
            "peak_step": 3,
        });
        assert_eq!(stages[0], expected);
        assert_eq!(stages[1]["peak_step"], serde_json::Value::Null);
    }
}
