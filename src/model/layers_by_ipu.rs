//! Finds which layers run on each IPU of a pipeline that was already compiled (docs/model.md, "A
//! compiled pipeline").

use super::{LayerOptions, Layering, names, operations};
use crate::{
    debug_info::DebugInfo,
    message::FileError,
    profile::{Ipus, Programs},
};

/// The layers that run on each IPU of a compiled pipeline.
#[derive(Debug)]
pub struct LayersByIpu {
    /// The names of all layers, in the order in which they run.
    pub names: Vec<String>,
    /// One entry per IPU: the layers that run on the IPU, as ascending indices into `names`. A
    /// layer belongs to the IPU with the most vertices of the layer's operations.
    pub ipus: Vec<Vec<usize>>,
}

impl LayersByIpu {
    /// Finds the layers in the names of operations, and the IPU of each layer by the tiles of its
    /// vertices. `ipus` has the tiles of each IPU. Layers without vertices are on no IPU.
    ///
    /// # Errors
    /// If the program tree is cyclic or too large.
    pub fn find(
        programs: &Programs,
        debug_info: &DebugInfo,
        options: &LayerOptions,
        ipus: Ipus,
    ) -> Result<Self, FileError> {
        let found = operations::find(programs, debug_info)?;
        let (operations, _) = names::name_all(&found, programs, debug_info)?;
        let layering = Layering::of_names(&operations, options);
        // One list per layer, with one entry per IPU: the number of vertices that the layer's
        // operations have on the IPU.
        let mut vertices = vec![vec![0u64; ipus.count as usize]; layering.len() - 1];
        for (index, operation) in found.operations.iter().enumerate() {
            let Some(layer) = layering.own_layer(index) else {
                continue;
            };
            let sets = operation
                .programs
                .iter()
                .filter_map(|&program| programs.compute_set(program));
            for (_, instances) in sets.flat_map(|set| &set.vertices) {
                for (ipu, sum) in (0u32..).zip(&mut vertices[layer as usize - 1]) {
                    *sum = sum.saturating_add(instances.total_of(ipus.tiles(ipu)));
                }
            }
        }
        let mut by_ipu = vec![Vec::new(); ipus.count as usize];
        for (layer, vertices) in vertices.iter().enumerate() {
            // If several IPUs have equally many vertices of a layer, the layer belongs to the first
            // of them. Since `max_by_key` returns the last of equal maxima, the IPUs are searched
            // in reverse order.
            let most = vertices.iter().enumerate().rev().max_by_key(|ipu| ipu.1);
            if let Some((ipu, 1..)) = most {
                by_ipu[ipu].push(layer);
            }
        }
        Ok(Self {
            names: layering.names[1..].to_vec(),
            ipus: by_ipu,
        })
    }
}
