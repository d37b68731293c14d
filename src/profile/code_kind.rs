//! The categories of lowered variables that hold code or vertex state.

/// A kind of memory that programs need besides their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// Code of vertex types.
    VertexCode,
    /// State of vertex instances, with their field data and descriptors.
    VertexState,
    /// Code of exchanges between tiles of one IPU.
    ExchangeCode,
    /// Code that runs the control program.
    ControlCode,
}

impl CodeKind {
    /// All kinds, each at the index `kind as usize`.
    pub const ALL: [CodeKind; 4] = [
        CodeKind::VertexCode,
        CodeKind::VertexState,
        CodeKind::ExchangeCode,
        CodeKind::ControlCode,
    ];

    /// Returns the categories of lowered variables that hold this kind of memory. On a real
    /// profile, the four categories of vertex state add up to `memory_by_compute_set` on every
    /// tile.
    pub fn categories(self) -> &'static [&'static str] {
        match self {
            CodeKind::VertexCode => &["vertexCode"],
            CodeKind::VertexState => &[
                "vertexInstanceState",
                "vertexFieldData",
                "copyDescriptor",
                "vectorListDescriptor",
            ],
            CodeKind::ExchangeCode => &["internalExchangeCode"],
            CodeKind::ControlCode => &["controlCode"],
        }
    }

    /// Returns the kind of code that lowered variables of this category hold; `None` if they hold
    /// data.
    pub fn of_category(category: &str) -> Option<CodeKind> {
        let holds = |kind: &CodeKind| kind.categories().contains(&category);
        CodeKind::ALL.into_iter().find(holds)
    }
}
