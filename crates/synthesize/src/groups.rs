//! Variables of user data. A *group* is one unlowered variable: it has at most
//! one lowered variable on each tile.

use super::places::Places;
use super::tensors::TensorOf;
use super::tree::Window;

/// The purpose of a group; decides on its category, lifetime and users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Parameters and optimiser state: always live.
    Weight,
    /// Output of a forward operation, kept until its last use.
    Activation,
    /// Gradient of weights, kept until the update.
    Gradient,
    Work,
    Message,
    Rearrangement,
    OutputEdge,
    Constant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Its compute set reads or writes it.
    Compute,
    Source,
    Destination,
}

/// A use of a group: the program stage that uses it, and how.
pub type Use = (usize, Access);

#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub role: Role,
    pub window: Window,
    /// Bytes on an average tile of the window.
    pub bytes: u64,
    pub layer: Option<u32>,
    pub op: usize,
    pub uses: Vec<Use>,
    pub places: Places,
    /// Whether the last tile has the bytes of the first one, and so on.
    pub is_mirrored: bool,
    /// A group on the same tiles, and the factor by which this group has its bytes.
    pub like: Option<(usize, u64)>,
    pub key: u64,
    /// The kind of tensor as which the host copies the group; `None` if the host does not copy it.
    pub mark: Option<TensorOf>,
    pub is_float: bool,
    /// Whether the group is live from its first use to its last use.
    pub is_carried: bool,
}

impl Group {
    pub fn new(op: usize, role: Role) -> Self {
        Self {
            name: String::new(),
            role,
            window: Window { first: 0, count: 0 },
            bytes: 0,
            layer: None,
            op,
            uses: Vec::new(),
            places: Places::NONE,
            is_mirrored: false,
            like: None,
            key: 0,
            mark: None,
            is_float: false,
            is_carried: matches!(role, Role::Activation | Role::Gradient),
        }
    }
}
