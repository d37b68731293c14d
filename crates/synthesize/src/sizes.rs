//! Computes how many bytes the parts of a model have, and on which tiles their weights are.

use super::groups::Role;
use super::random::topic;
use super::settings::Ends;
use super::settings::{Framework, Settings};
use super::tensors::Part;
use super::tree::Window;

/// Returns the weights and the activations of a layer, in thousandths of those of the average
/// layer. Convolutional networks trade activations for weights from layer to layer; the layers of
/// other models grow a little and unevenly.
pub fn layer_scale(settings: &Settings, layer: u32) -> (u64, u64) {
    let about = [topic::LAYER, layer.into(), 0, 0];
    let jitter = settings.random.below(360, about);
    let way = 1000 * u64::from(layer) / u64::from(settings.layers.max(2) - 1);
    match settings.framework {
        Framework::Tensorflow => (300 + way * 14 / 10 + jitter / 2, 1700 - way * 13 / 10),
        _ => (820 + jitter, 900 + jitter / 3 + way / 4),
    }
}

/// Returns the bytes of weights, and the bytes of everything else, that a part of the model has on
/// an average tile.
pub fn budget(settings: &Settings, part: Part) -> (u64, u64) {
    if settings.features.bert_large {
        return of_bert_large(part);
    }
    let bytes = settings.bytes_per_layer_tile;
    let (weights, rest) = match (part, settings.features.ends) {
        (Part::Layer(layer), _) => {
            let (weights, rest) = layer_scale(settings, layer);
            (weights * 2 / 5, rest * 3 / 5)
        }
        (_, Ends::Small) => (40, 60),
        (Part::In, Ends::Medium) => (450, 200),
        (Part::Out, Ends::Medium) => (200, 250),
        (Part::In, Ends::Large) => (1300, 500),
        (Part::Out, Ends::Large) => (900, 900),
    };
    (bytes * weights / 1000, bytes * rest / 1000)
}

const TILES: u64 = 1472;

/// Returns the bytes on each tile of this number of 16-bit elements, distributed evenly over all
/// tiles of an IPU.
pub fn of_elements(elements: u64) -> u64 {
    let bytes = elements.div_ceil(TILES) * 2;
    bytes.next_multiple_of(4)
}

/// Rows of the embedding's tables: words, positions with token types, and the norm.
pub const TABLES_OF_BERT: [u32; 3] = [30_522, 514, 2];

/// Returns [`budget`] for BERT-Large. The bytes without weights are such that each layer passes 2
/// MiB on, and the head a value of 16 bits for each word of its 20 masked tokens of a sample.
fn of_bert_large(part: Part) -> (u64, u64) {
    const HIDDEN: u64 = 1024;
    let attention = 4 * (HIDDEN * HIDDEN + HIDDEN);
    let forward = 2 * 4 * HIDDEN * HIDDEN + 4 * HIDDEN + HIDDEN;
    let norms = 4 * HIDDEN;
    let [words, positions, norm] = TABLES_OF_BERT.map(u64::from);
    let (weights, rest) = match part {
        Part::Layer(_) => (attention + forward + norms, 77_200),
        Part::In => ((words + positions + norm) * HIDDEN, 11_900),
        Part::Out => (HIDDEN * HIDDEN, 36_900),
    };
    (2 * weights / TILES, rest)
}

/// Returns the tiles of a weight; its gradient and its moments are on the same tiles.
pub fn window(settings: &Settings, weight: usize) -> Window {
    let tiles = settings.tiles;
    let about = [topic::VARIABLE, weight as u64, 0, 20];
    let hash = settings.random.hash(about);
    let is_partial = !settings.is_even() && hash % 100 < 15;
    let is_mirrored = settings.is_mirrored(Role::Weight, weight as u64);
    window_of(tiles, hash, is_partial).mirrored_if(is_mirrored, tiles)
}

pub fn window_of(tiles: u32, hash: u64, is_partial: bool) -> Window {
    if !is_partial {
        return Window::all(tiles);
    }
    let count = (tiles / 4 + (hash >> 8) as u32 % (tiles / 2)).max(1);
    Window {
        first: (hash >> 40) as u32 % (tiles - count + 1),
        count,
    }
}
