//! Variables of user data. A *group* is one unlowered variable: it has at most
//! one lowered variable on each tile.

use super::places::Places;
use super::tree::{Mark, Window};

/// The purpose of a group; decides on its category, lifetime and users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Parameters and optimiser state: always live.
    Weight,
    /// Output of a forward operation, kept until its last use.
    Activation,
    /// Gradient of weights, kept until the update.
    Gradient,
    /// Work memory of single program stages.
    Work,
    /// The data that an exchange receives.
    Message,
    /// Rearranged copies for an exchange.
    Rearrangement,
    /// Output edges before an exchange.
    OutputEdge,
    /// Constants: always live.
    Constant,
}

/// How a program stage uses a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its compute set reads or writes it.
    Compute,
    /// Its exchange sends it.
    Source,
    /// Its exchange receives it.
    Destination,
}

/// One unlowered variable.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub role: Role,
    /// Tiles that hold a part of it.
    pub window: Window,
    /// Bytes on an average tile of the window.
    pub bytes: u64,
    /// The layer that it was made for.
    pub layer: Option<u32>,
    /// The operation that it was made for.
    pub op: usize,
    /// Program stages that use it.
    pub uses: Vec<(usize, Access)>,
    /// The places that need it.
    pub places: Places,
    /// Another group on the same tiles, of which it has so many times the bytes.
    pub like: Option<(usize, u64)>,
    /// The seed of its bytes.
    pub key: u64,
    /// The mark that the host copies it by.
    pub mark: Option<Mark>,
    /// Whether its elements have 32 bits.
    pub is_float: bool,
    /// Whether it is live from its first use to the last one.
    pub is_carried: bool,
}

impl Group {
    /// A group for an operation, of nothing yet.
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
            like: None,
            key: 0,
            mark: None,
            is_float: false,
            is_carried: matches!(role, Role::Activation | Role::Gradient),
        }
    }
}
