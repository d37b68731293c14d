//! Makes the report on whether a recorded compilation fits.

use crate::{
    memory::LiveCurve,
    message::Warning,
    model::LayersByIpu,
    profile::{CompiledProfile, LiveOnTile, Recorded, VariableSums},
    report::{
        CategoryBytes, Curve, Detail, Fit, Fullness, IpuFit, NamedBytes, Provenance,
        RecordedMemory, RecordedTileFacts, Report, TileParts, VERSION,
    },
    search::free_bytes,
    witnesses::Contradiction,
};

/// Approximate upper bound on the points in the curves of live bytes of all IPUs together, so that
/// a report stays small.
const MAX_POINTS: usize = 12_000;

/// The data from which a report on a recorded compilation is made.
#[derive(Debug)]
pub struct FitInputs<'a> {
    /// The memory and the cycles that were recorded for the compilation.
    pub profile: &'a CompiledProfile,
    /// The layers that run on each IPU; `None` if the names of layers are unknown.
    pub layers: Option<&'a LayersByIpu>,
    /// Bytes that each tile may take: one entry for all IPUs, or one entry per IPU of the profile.
    pub limits: Vec<u64>,
    /// How much the report contains besides whether the compilation fits, such as data for an HTML
    /// page.
    pub detail: Detail,
    /// The files and options that the report is made from.
    pub provenance: Provenance,
    /// Warnings about the profile and `debug.cbor`.
    pub warnings: Vec<Warning>,
    /// Contradictions between statements of the profile, which can make a verdict impossible.
    pub contradictions: Vec<Contradiction>,
}

impl Report {
    /// Makes the report on a recorded compilation. The report has no layers and no split, since
    /// nothing was searched.
    pub fn of_compilation(inputs: FitInputs<'_>) -> Self {
        let profile = inputs.profile;
        let limit = inputs.limits.iter().copied().max().unwrap_or(0);
        let Recorded { tiles, categories } = &profile.recorded;
        let variables = profile.variables.as_ref();
        let ipus: Vec<_> = (0..profile.ipus.count).map(|ipu| inputs.ipu(ipu)).collect();
        Self {
            version: VERSION,
            provenance: inputs.provenance,
            memory: RecordedMemory::new(limit, tiles, categories, inputs.detail, None),
            fit: Some(Fit {
                fits: ipus.iter().all(|ipu| ipu.fits),
                limit,
                tiles_per_ipu: profile.ipus.tiles_per_ipu,
                replicas: profile.ipus.replicas,
                listed_replicas: profile.ipus.listed_replicas,
                variables: variables.map(|sums| sums.count),
                has_names: variables.is_some_and(|sums| sums.has_names),
                steps: profile.live.as_ref().map(|live| live.steps),
                ipus,
                limits: Some(inputs.limits).filter(|limits| limits.len() > 1),
                comparison: None,
            }),
            warnings: inputs.warnings,
            contradictions: inputs.contradictions,
            ..Self::default()
        }
        .without_unearned_verdict()
    }
}

impl FitInputs<'_> {
    fn ipu(&self, ipu: u32) -> IpuFit {
        let profile = self.profile;
        let (place, range) = (ipu as usize, profile.ipus.tiles(ipu));
        let limit = *(self.limits.get(place).or(self.limits.first())).unwrap_or(&0);
        let totals = || {
            profile.recorded.tiles[range.clone()]
                .iter()
                .map(|tile| tile.total)
        };
        let overflow_counts = limit <= profile.target.bytes_per_tile;
        let over = range.clone().filter(|&tile| {
            profile.recorded.tiles[tile].total > limit
                || overflow_counts && profile.overflowed(tile) > 0
        });
        let tiles_over = over.count() as u32;
        let sums = profile.variables.as_ref().filter(|sums| sums.has_names);
        let fullest_tile = self.fullest_tile(ipu, limit);
        IpuFit {
            ipu,
            fits: tiles_over == 0,
            layers: self.layers.map(|layers| {
                (layers.ipus[place].iter())
                    .map(|&layer| Some(layers.names[layer].clone()))
                    .collect()
            }),
            total: totals().sum(),
            tiles_over,
            overflowed: range.clone().map(|tile| profile.overflowed(tile)).sum(),
            tiles: Fullness::of(totals(), limit),
            categories: (profile.recorded.categories.iter())
                .map(|own| CategoryBytes::new(own, range.clone(), Some(fullest_tile.tile)))
                .collect(),
            fullest_tile,
            named: sums.map(|sums| {
                let [stashed, restored, accumulators, received] = sums.named[place];
                NamedBytes {
                    stashed,
                    restored,
                    accumulators,
                    received,
                }
            }),
            curve: self.curve(ipu),
            cycles: profile.cycles.as_ref().map(|cycles| cycles[place]),
        }
    }

    fn fullest_tile(&self, ipu: u32, limit: u64) -> RecordedTileFacts {
        let profile = self.profile;
        let tile = profile.ipus.fullest_tile(&profile.recorded.tiles, ipu);
        let recorded = &profile.recorded.tiles[tile as usize];
        let sums = profile.variables.as_ref();
        let live = sums.map(|sums| (sums, &sums.tiles[ipu as usize]));
        RecordedTileFacts {
            tile,
            tile_of_ipu: tile % profile.ipus.tiles_per_ipu,
            bytes: recorded.total,
            limit,
            free: free_bytes(limit, recorded.total),
            with_gaps: recorded.with_gaps,
            overflowed: profile.overflowed(tile as usize),
            always_live: recorded.always_live,
            not_always_live: recorded.not_always_live,
            peak_step: live.and_then(|(_, live)| live.step),
            parts: self.parts(tile, live),
        }
    }

    /// Returns the bytes on `tile` by kind of contents, such as variables, code or gaps. `live` has
    /// the variables that are live at the tile's peak step, and the names of their categories;
    /// recorded bytes beyond these variables are gaps. If the profile has no lowered variables
    /// (`None`), the bytes of code come from the recorded categories, and bytes that are neither
    /// code nor gaps count as variables.
    fn parts(&self, tile: u32, live: Option<(&VariableSums, &LiveOnTile)>) -> TileParts {
        let recorded = &self.profile.recorded.tiles[tile as usize];
        let mut parts = TileParts::default();
        if let Some((sums, live)) = live {
            for &(category, name, bytes) in &live.live {
                parts.add(&sums.category_names[usize::from(category)], name, bytes);
            }
            parts.gaps = recorded.total.saturating_sub(parts.total());
        } else {
            for category in &self.profile.recorded.categories {
                parts.add(&category.name, None, category.bytes.get(tile).into());
            }
            parts.gaps = recorded.beyond_variables();
            let rest = parts.total() - parts.variables;
            parts.variables = recorded.total.saturating_sub(rest);
        }
        parts
    }

    /// Returns the live bytes at the steps of the program, summed over the tiles of the IPU with
    /// index `ipu` and thinned to fewer points; `None` if the profile has no live bytes of IPUs.
    fn curve(&self, ipu: u32) -> Option<Curve> {
        let profile = self.profile;
        let live = profile.live.as_ref()?;
        let mut points = live.ipus[ipu as usize].clone();
        // A curve must begin at step 0, but the profile records live bytes only from their first
        // change on. If this change is later, the curve gets a point with 0 bytes at step 0.
        if points.first().is_some_and(|&(step, _)| step > 0) {
            points.insert(0, (0, 0));
        }
        let tiles = profile.recorded.tiles[profile.ipus.tiles(ipu)].iter();
        let curve = LiveCurve {
            window: (0, live.steps.saturating_sub(1)),
            fixed: 0,
            always_live: tiles.map(|tile| tile.always_live).sum(),
            points,
        };
        Some(Curve::new(&curve, MAX_POINTS / profile.ipus.count as usize))
    }
}
