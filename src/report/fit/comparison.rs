//! Compares the recorded memory of each IPU with the prediction for the pipeline stage that runs on
//! the IPU.

use crate::{
    message::{FileError, unusable},
    report::{
        CutElsewhere, Fit, FitComparison, IpuFit, MatchedBy, Report, Split, Stage, StageComparison,
        TileParts,
    },
    search::free_bytes,
};
use std::collections::BTreeSet;

impl FitComparison {
    /// Compares each stage of `prediction`, the report of an earlier run, with the recorded memory
    /// of one IPU of the first replica.
    ///
    /// # Errors
    /// When the prediction has no split, or a split without stages.
    pub fn new(prediction: &Report, fit: &Fit) -> Result<Self, FileError> {
        let Some(split) = &prediction.split else {
            return unusable(
                "it has no split to compare with; give a report that --export-json wrote with \
                 --solve or --layers-per-ipu",
            );
        };
        if split.stages.is_empty() {
            return unusable(
                "its split has no stages, since none was found; give a report of a search that \
                 found one",
            );
        }
        let ipus = fit.of_replica();
        let (pairs, matched_by) = matched(&split.stages, ipus);
        let adds_accumulators = prediction
            .pipeline
            .as_ref()
            .is_some_and(|own| !own.recording.accumulates);
        // The stash and the accumulators are compared on their own only if the prediction and the
        // compilation both count them separately; otherwise, they count as variables. If the
        // profile of the prediction already accumulates gradients, the prediction cannot count
        // accumulators separately.
        let shared =
            |parts: TileParts| parts.with_named(fit.has_names, fit.has_names && adds_accumulators);
        let stages: Vec<_> = pairs
            .iter()
            .map(|(stage, ipu)| StageComparison::new(stage, ipu, shared))
            .collect();
        let cut_elsewhere = cut_elsewhere(split, ipus, &pairs, matched_by);
        Ok(Self {
            profile: prediction.provenance.files.profile.clone(),
            matched_by,
            predicted_fits: split.fits,
            predicted_stages: split.stages.len() as u32,
            reserve: stages
                .iter()
                .map(|stage| stage.reserve)
                .max()
                .filter(|_| cut_elsewhere.is_none()),
            cut_elsewhere,
            stages,
        })
    }
}

/// The predicted and the recorded bytes of one kind of contents on the fullest tile of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartComparison {
    /// The name of a kind of contents of a tile, such as `vertex code`.
    pub name: &'static str,
    /// Predicted bytes of this kind of contents on the fullest tile of a stage.
    pub predicted: u64,
    /// Recorded bytes of this kind of contents on the fullest tile of a stage's IPU.
    pub recorded: u64,
    /// `recorded` less `predicted`: below 0 if the fullest tile has fewer bytes of this kind of
    /// contents than predicted.
    pub difference: i64,
}

impl StageComparison {
    fn new(stage: &Stage, ipu: &IpuFit, shared: impl Fn(TileParts) -> TileParts) -> Self {
        let (predicted, recorded) = (&stage.fullest_tile, &ipu.fullest_tile);
        Self {
            stage: stage.stage,
            ipu: ipu.ipu,
            layers: stage.layers.clone(),
            predicted: predicted.bytes,
            recorded: recorded.bytes,
            difference: free_bytes(recorded.bytes, predicted.bytes),
            reserve: recorded.bytes.saturating_sub(predicted.bytes),
            free: recorded.free,
            predicted_parts: shared(TileParts::predicted(predicted)),
            recorded_parts: shared(recorded.parts),
            predicted_total: stage.total,
            recorded_total: ipu.total,
            total_difference: free_bytes(ipu.total, stage.total),
        }
    }

    /// Returns the predicted and the recorded bytes on the fullest tile for each kind of contents,
    /// in the order of [`TileParts::named`].
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = PartComparison> {
        let recorded = self.recorded_parts.named();
        self.predicted_parts.named().into_iter().zip(recorded).map(
            |((name, predicted), (_, recorded))| PartComparison {
                name,
                predicted,
                recorded,
                difference: free_bytes(recorded, predicted),
            },
        )
    }

    /// Returns the kind of contents, such as variables or code, that explains most of the
    /// difference between recorded and predicted bytes on the fullest tile. It is the kind that
    /// differs most in the same direction (above or below the prediction) as the whole tile. If
    /// several kinds differ equally, the first one is returned. Returns `None` if the recorded and
    /// the predicted bytes of the tile are equal.
    pub fn worst_part(&self) -> Option<PartComparison> {
        let sign = self.difference.signum();
        self.parts()
            .rev()
            .filter(|part| sign != 0 && part.difference.signum() == sign)
            .max_by_key(|part| part.difference.unsigned_abs())
    }
}

fn named_layers(ipu: &IpuFit) -> BTreeSet<&str> {
    (ipu.layers.iter().flatten().flatten().map(String::as_str)).collect()
}

/// Matches predicted stages with recorded IPUs. First, each stage in turn gets the unmatched IPU
/// that runs the most of the stage's layers. Stages with no layer on an unmatched IPU then get the
/// remaining IPUs in order, as far as there are any. Also returns [`MatchedBy::Layers`] if layers
/// decided for any stage, otherwise [`MatchedBy::Order`].
fn matched<'a>(
    stages: &'a [Stage],
    ipus: &'a [IpuFit],
) -> (Vec<(&'a Stage, &'a IpuFit)>, MatchedBy) {
    let mut left: Vec<&IpuFit> = ipus.iter().collect();
    let by_layers: Vec<Option<&IpuFit>> = stages
        .iter()
        .map(|stage| {
            // Counts the layers (without In and Out) of the predicted `stage` that also run on the
            // IPU `left[place]`. `left` has the IPUs that are not matched with a stage yet.
            let common = |&place: &usize| {
                let layers = named_layers(left[place]);
                (stage.named_layers().filter(|layer| layers.contains(layer))).count()
            };
            (0..left.len())
                .rev()
                .max_by_key(common)
                .filter(|place| common(place) > 0)
                .map(|place| left.remove(place))
        })
        .collect();
    let by = if by_layers.iter().any(Option::is_some) {
        MatchedBy::Layers
    } else {
        MatchedBy::Order
    };
    let mut left = left.into_iter();
    let pairs = stages
        .iter()
        .zip(by_layers)
        .filter_map(|(stage, ipu)| Some((stage, ipu.or_else(|| left.next())?)))
        .collect();
    (pairs, by)
}

/// Returns how the cuts of the compiled pipeline differ from those of `split`, the predicted split:
/// another number of stages, or cuts at other layers. Returns `None` if no difference is known.
/// `ipus` are the IPUs of one replica.
fn cut_elsewhere(
    split: &Split,
    ipus: &[IpuFit],
    pairs: &[(&Stage, &IpuFit)],
    matched_by: MatchedBy,
) -> Option<CutElsewhere> {
    let stages: Vec<u32> = (pairs.iter())
        .filter(|(stage, ipu)| {
            matched_by == MatchedBy::Layers
                && BTreeSet::from_iter(stage.named_layers()) != named_layers(ipu)
        })
        .map(|(stage, _)| stage.stage)
        .collect();
    let has_other_count = ipus.len() != split.stages.len();
    (has_other_count || !stages.is_empty()).then(|| CutElsewhere {
        ipus: has_other_count.then_some(ipus.len() as u32),
        stages,
        recorded: ipus.iter().filter_map(|ipu| ipu.layers.clone()).collect(),
    })
}
