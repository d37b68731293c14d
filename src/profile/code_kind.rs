//! Groups the categories of lowered variables that hold code or vertex state.

/// A kind of memory that belongs to programs rather than to tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// Code of vertex types.
    VertexCode,
    /// State of vertices, with pointers, descriptors and padding.
    VertexState,
    /// Code of exchanges between tiles of one IPU.
    ExchangeCode,
    /// Control code of programs.
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

    /// Returns the names of the categories of lowered variables with this kind of memory. In a real
    /// profile the four categories of vertex state add up to `memory_by_compute_set` on every tile
    /// (checked).
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

    /// Returns the kind of memory in the category of lowered variables with this name; `None` for
    /// data of tensors.
    pub fn of_category(category: &str) -> Option<CodeKind> {
        let holds = |kind: &CodeKind| kind.categories().contains(&category);
        CodeKind::ALL.into_iter().find(holds)
    }
}
