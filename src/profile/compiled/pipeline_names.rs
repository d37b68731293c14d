//! Names that tell what a pipeline made (docs/model.md, "A compiled pipeline").

/// The purpose of a variable, as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PipelineName {
    /// It keeps copies for the micro-batches under way: `Stashed___` of PopART, the
    /// `buffer/` of a TensorFlow FIFO.
    Stashed,
    /// It holds a tensor that was taken out of these: `Restored___` of PopART;
    /// `out/`, `pop` and `push` of a FIFO.
    Restored,
    /// It sums up gradients: `Accum___` of PopART, `Accumulator` of TensorFlow.
    Accumulator,
    /// It came from another IPU: names with `ipucopy` or `inter-ipu-copy`.
    Received,
}

impl PipelineName {
    /// All of them, each at the index `name as usize`.
    pub const ALL: [Self; 4] = [
        Self::Stashed,
        Self::Restored,
        Self::Accumulator,
        Self::Received,
    ];

    /// The purpose that the base name of a variable tells.
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
