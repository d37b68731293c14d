//! Which operation a program belongs to (docs/model.md, "Contexts and names").

use crate::debug_info::{DebugInfo, Position, SoftwareLayer};
use rustc_hash::FxHashMap;

/// The operation context of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationContext {
    /// The context whose id is the uid of the operation.
    pub(super) position: Position,
    /// Did the compiler make the operation? Then the chain has no context of the operation layer,
    /// and the operation has no name of its own.
    pub(super) is_anonymous: bool,
}

/// The software layer whose contexts distinguish operations; `None` for plain Poplar.
pub(super) fn operation_layer(debug_info: &DebugInfo) -> Option<SoftwareLayer> {
    [
        SoftwareLayer::Popart,
        SoftwareLayer::XlaOp,
        SoftwareLayer::HloInstruction,
    ]
    .into_iter()
    .find(|&layer| debug_info.has_layer(layer))
}

/// Finds operation contexts by debug id, once for each id: many programs share one.
pub(super) struct OperationContexts<'a> {
    debug_info: &'a DebugInfo,
    layer: Option<SoftwareLayer>,
    found: FxHashMap<u64, Option<OperationContext>>,
}

impl<'a> OperationContexts<'a> {
    pub(super) fn new(debug_info: &'a DebugInfo) -> Self {
        Self {
            debug_info,
            layer: operation_layer(debug_info),
            found: FxHashMap::default(),
        }
    }

    /// The operation context of a program with this debug id; `None` for 0 and for ids that the
    /// file lacks.
    pub(super) fn of(&mut self, debug_id: u64) -> Option<OperationContext> {
        if let Some(&known) = self.found.get(&debug_id) {
            return known;
        }
        let context = self.find(debug_id);
        self.found.insert(debug_id, context);
        context
    }

    /// The id of a context.
    pub(super) fn id(&self, context: OperationContext) -> u64 {
        self.debug_info.id(context.position)
    }

    fn find(&self, debug_id: u64) -> Option<OperationContext> {
        let chain = || self.debug_info.chain(debug_id);
        let named = |position| OperationContext {
            position,
            is_anonymous: false,
        };
        let of_layer = |wanted| move |&p: &Position| self.debug_info.layer(p) == wanted;
        let Some(layer) = self.layer else {
            let outermost = chain().filter(of_layer(SoftwareLayer::Poplibs)).last();
            return outermost.or_else(|| chain().next()).map(named);
        };
        chain().find(of_layer(layer)).map(named).or_else(|| {
            Some(OperationContext {
                position: chain().last()?,
                is_anonymous: true,
            })
        })
    }
}
