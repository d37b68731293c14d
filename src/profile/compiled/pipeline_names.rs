//! Names of variables that a pipeline creates (docs/model.md, "A compiled pipeline").

/// Purpose of a variable in a pipeline, derived from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PipelineName {
    /// Holds copies for the micro-batches in flight: `Stashed___` of PopART, `buffer/` of a
    /// TensorFlow FIFO.
    Stashed,
    /// Holds a tensor taken out of a stash: `Restored___` of PopART; `out/`, `pop` and `push` of a
    /// TensorFlow FIFO.
    Restored,
    /// Sums up gradients: `Accum___` of PopART, `Accumulator` of TensorFlow.
    Accumulator,
    /// Was received from another IPU: a name with `ipucopy` or `inter-ipu-copy`.
    Received,
}

impl PipelineName {
    /// Every purpose, at the index `name as usize`.
    pub const ALL: [Self; 4] = [
        Self::Stashed,
        Self::Restored,
        Self::Accumulator,
        Self::Received,
    ];

    /// Purpose of the variable with the base name `name`; `None` if it is no variable of a
    /// pipeline.
    pub fn of(name: &str) -> Option<Self> {
        if name.contains("Stashed___") {
            return Some(Self::Stashed);
        }
        if name.contains("Restored___") {
            return Some(Self::Restored);
        }
        let lower = name.to_ascii_lowercase();
        if lower.contains("fifo") {
            let parts = || lower.split(['/', '#', '.']);
            if parts().any(|part| part == "buffer") {
                return Some(Self::Stashed);
            }
            if parts().any(|part| ["out", "pop", "push"].contains(&part)) {
                return Some(Self::Restored);
            }
        }
        let component = lower.split(['/', '#']).any(|part| part == "accumulator");
        if component || name.contains("Accum___") {
            return Some(Self::Accumulator);
        }
        let is_received = ["ipucopy", "ipu_copy", "inter-ipu-copy"]
            .iter()
            .any(|word| lower.contains(word));
        is_received.then_some(Self::Received)
    }
}

#[cfg(test)]
mod tests {
    use super::PipelineName::{self, Accumulator, Received, Restored, Stashed};

    #[test]
    fn names_of_popart_and_of_tensorflow() {
        for (name, expected) in [
            ("Stashed___layer0/MatMul:0#", Some(Stashed)),
            ("encoder/Restored___x#", Some(Restored)),
            ("Accum___Gradient___w#", Some(Accumulator)),
            ("layer0/MatMul:0_ipucopy#", Some(Received)),
            ("stage_1/fifo.12/buffer/0#", Some(Stashed)),
            ("stage_1/IpuFifo/out/0#", Some(Restored)),
            ("stage_1/fifo.12/push#", Some(Restored)),
            ("dense/kernel/Accumulator#", Some(Accumulator)),
            ("x/inter-ipu-copy#", Some(Received)),
            ("layer0/out/MatMul#", None),
            ("accumulate/buffer#", None),
            ("weights", None),
        ] {
            assert_eq!(PipelineName::of(name), expected, "{name}");
        }
    }
}
