//! The short way from two files to a report: [`Analysis`] reads, [`Layers`]
//! knows what belongs to each layer, and [`Layers::split`] finds the best split.
//! The command goes the same way, with a look at each step.

use crate::debug_info::DebugInfo;
use crate::memory::{MemoryModel, contradiction};
use crate::message::Warning;
use crate::model::{
    LayerOptions, Layering, Model, Placement, PlacementOptions, ProfileLookup, Rules,
};
use crate::profile::Profile;
use crate::progress::{Progress, Unit};
use crate::report::{
    Calibration, Detail, Files, Inputs, PageVariables, Peaks, Provenance, Report, printable,
};
use crate::saved;
use crate::search::{SearchRequest, SearchResult, search};
use crate::trust::check_debug;
use crate::witnesses::judge;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// What is to be said of files, with the path of each.
pub(crate) type FileWarnings = Vec<(String, Warning)>;

/// A model, and what is known of the files that it is from.
#[derive(Debug)]
pub struct Analysis {
    /// The model.
    pub model: Model,
    /// Finds variables by name; not in a saved model.
    lookup: Option<ProfileLookup>,
    /// The files.
    pub files: Files,
    /// `framework.json` from beside the profile, where it was read.
    pub framework: Option<Value>,
    /// The same for `app.json`.
    pub app: Option<Value>,
    /// How many lowered variables and how many contexts were read; `None` of a
    /// saved model.
    pub counts: Option<(usize, usize)>,
    /// What was unusual about the files, each with its path.
    pub warnings: FileWarnings,
}

/// What is read beside the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The tile and step where the whole model takes most memory, with the names
    /// of what is live there.
    pub memory_peak: bool,
    /// What finds variables by name for a report with everything: some 20 bytes
    /// for each lowered variable.
    pub names: bool,
    /// Contexts that are damaged or of another compilation are taken all the same.
    pub trust_debug_info: bool,
    /// A profile that contradicts itself is read all the same: there is no verdict on it.
    pub allow_incomplete: bool,
}

/// A model with its layers.
#[derive(Debug)]
pub struct Layers<'a> {
    analysis: &'a Analysis,
    /// Which layer each operation has.
    pub layering: Layering,
    /// Where everything counts, and the layer order.
    pub placement: Placement,
    /// What is to be said of them.
    pub warnings: Vec<Warning>,
}

impl Analysis {
    /// Reads `profile.pop` and `debug.cbor`.
    ///
    /// # Errors
    /// With the name of the file that could not be read or understood.
    pub fn read(profile: &Path, debug: &Path) -> Result<Self> {
        let options = ReadOptions {
            memory_peak: false,
            names: true,
            trust_debug_info: false,
            allow_incomplete: false,
        };
        Self::read_with(profile, debug, options, &Progress::new())
    }

    /// The same, one file beside the other, telling `progress` how far it is.
    pub(crate) fn read_with(
        profile: &Path,
        debug: &Path,
        options: ReadOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let (read, debug_info) = rayon::join(
            || Profile::read_with(profile, progress).with_context(|| shown(profile)),
            || DebugInfo::read_with(debug, progress).with_context(|| shown(debug)),
        );
        let (read, debug_info) = (read?, debug_info?);
        let of_debug = (debug, &debug_info);
        let of_debug = check_debug(&read.programs, of_debug, options.trust_debug_info)?;
        let counts = (read.variables.len(), debug_info.len());
        let _task = progress.begin("joining programs and variables", Unit::Rows, 0);
        let built = Model::build_with_lookup(read, debug_info, options.memory_peak);
        let (mut model, lookup) = built.with_context(|| shown(profile))?;
        model.contradictions.extend(contradiction(&model));
        let of_model = warnings_of(&model, profile, options.allow_incomplete)?;
        // Where the model is saved, what is said of the contexts goes with it.
        let said = of_debug.iter().map(|(_, own)| own.clone());
        model.warnings.splice(0..0, said);
        Ok(Self {
            warnings: [of_debug, of_model].concat(),
            model,
            lookup: Some(lookup).filter(|_| options.names),
            counts: Some(counts),
            framework: None,
            app: None,
            files: Files {
                profile: profile.to_string_lossy().into_owned(),
                debug: Some(debug.to_string_lossy().into_owned()),
                saved_model: false,
            },
        })
    }

    /// Loads a model that [`Analysis::save`] saved.
    ///
    /// # Errors
    /// With the name of the file when it could not be read or understood, or when the
    /// profile that it is from contradicts itself and `allow_incomplete` does not allow
    /// that.
    pub fn load(file: &Path, allow_incomplete: bool) -> Result<Self> {
        let model = saved::load(file).with_context(|| shown(file))?;
        Ok(Self {
            warnings: warnings_of(&model, file, allow_incomplete)?,
            model,
            lookup: None,
            counts: None,
            framework: None,
            app: None,
            files: Files {
                profile: file.to_string_lossy().into_owned(),
                debug: None,
                saved_model: true,
            },
        })
    }

    /// Saves the model in a file of its own.
    ///
    /// # Errors
    /// With the name of the file when it cannot be written.
    pub fn save(&self, file: &Path) -> Result<()> {
        saved::save(&self.model, file).with_context(|| shown(file))
    }

    /// Sorts operations into layers.
    ///
    /// # Errors
    /// When operations share variables in more ways than those of any real model.
    pub fn layers(
        &self,
        rules: Rules,
        layers: &LayerOptions,
        places: &PlacementOptions,
    ) -> Result<Layers<'_>> {
        let layering = Layering::new(&self.model.operations, layers);
        self.placed(layering, rules, places)
    }

    /// The same with layers that are known.
    pub(crate) fn placed(
        &self,
        layering: Layering,
        rules: Rules,
        places: &PlacementOptions,
    ) -> Result<Layers<'_>> {
        let placement = match rules {
            Rules::Classic => Placement::classic(&self.model, &layering),
            Rules::Full => Placement::full(&self.model, &layering, places),
        };
        let placement = placement.with_context(|| self.shown())?;
        Ok(Layers {
            warnings: self.model.layer_warnings(&layering, &placement),
            placement,
            analysis: self,
            layering,
        })
    }

    fn shown(&self) -> String {
        printable(&self.files.profile)
    }
}

impl Layers<'_> {
    /// The position of a layer in the layer order, which constraints count in; of
    /// `In`, `Out` or `None` where there is one.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.placement.positions.find(name)
    }

    /// The model, ready to compute the memory of layers and stages.
    ///
    /// # Errors
    /// When layers share code in more ways than those of any real model.
    pub fn memory(&self) -> Result<MemoryModel<'_>> {
        let memory = MemoryModel::new(&self.analysis.model, &self.placement);
        memory.with_context(|| self.analysis.shown())
    }

    /// Finds the best split and says everything of it.
    ///
    /// # Errors
    /// Constraints that contradict each other, a profile that cannot be read
    /// again for the names of variables, and whatever makes an answer uncertain.
    pub fn split(&self, request: SearchRequest) -> Result<Report> {
        self.split_learning(request, None)
    }

    /// The same with what was learnt from a compilation.
    ///
    /// # Errors
    /// As [`Layers::split`], and when the calibration is of other layers.
    pub fn split_learning(
        &self,
        request: SearchRequest,
        calibration: Option<&Calibration>,
    ) -> Result<Report> {
        let pipeline = request.pipeline.choose(&self.analysis.model);
        let memory = self.memory()?.in_pipeline(pipeline);
        let memory = memory.with_context(|| self.analysis.shown())?;
        let positions = &self.placement.positions;
        let learnt = calibration.map(|own| {
            own.check(&self.analysis.model, positions)?;
            own.learnt(positions, pipeline)
        });
        let memory = memory.learning(learnt.transpose()?);
        let highest = request.highest_limit();
        let found = search(&memory, &self.placement, request)?;
        self.report(&memory, Some(&found), highest, Detail::Full, Vec::new())
    }

    /// What was found, as a report. The names of variables are fetched from the
    /// profile first, which must be what it was.
    pub(crate) fn report(
        &self,
        memory: &MemoryModel<'_>,
        found: Option<&SearchResult>,
        limit: u64,
        detail: Detail,
        arguments: Vec<String>,
    ) -> Result<Report> {
        let Analysis { model, lookup, .. } = self.analysis;
        let mut peaks = Peaks::new(model, memory, found, detail);
        if let Some(lookup) = lookup {
            let named = peaks.name_variables(lookup, model, memory, found);
            named.with_context(|| self.analysis.shown())?;
        }
        let page = match lookup {
            Some(lookup) if detail == Detail::Page => {
                let positions = &self.placement.positions;
                PageVariables::find(lookup, model, memory, positions, &peaks)
                    .with_context(|| self.analysis.shown())?
            }
            _ => PageVariables::default(),
        };
        Ok(Report::new(Inputs {
            page,
            model,
            layering: &self.layering,
            placement: &self.placement,
            memory,
            search: found,
            peaks,
            limit,
            detail,
            provenance: Provenance {
                arguments,
                framework: self.analysis.framework.clone(),
                app: self.analysis.app.clone(),
                layer_name_regex: self.layering.regex().map(|regex| regex.to_string()),
                ..Provenance::new(
                    &model.target,
                    &model.made,
                    self.analysis.files.clone(),
                    self.placement.rules.name(),
                )
            },
            warnings: self.warnings_of(memory, found),
        }))
    }

    /// All that a report is to warn of.
    fn warnings_of(&self, memory: &MemoryModel<'_>, found: Option<&SearchResult>) -> Vec<Warning> {
        let of_files = self.analysis.warnings.iter();
        let of_files = of_files.map(|(_, warning)| warning.clone());
        let of_recording = found.and_then(|_| memory.recording_warning());
        let of_updates = found.and_then(|found| memory.update_warning(&found.stages));
        let all = of_files.chain(self.warnings.iter().cloned());
        all.chain(of_recording).chain(of_updates).collect()
    }
}

/// What is to be said of a model that was read from `file`.
///
/// # Errors
/// When it contradicts itself, and that is not allowed.
fn warnings_of(model: &Model, file: &Path, allow_incomplete: bool) -> Result<FileWarnings> {
    let said = judge(&model.contradictions, allow_incomplete).with_context(|| shown(file))?;
    let all = said.into_iter().chain(model.warnings.iter().cloned());
    Ok(all.map(|own| (shown(file), own)).collect())
}

/// A path in a message.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Learnt, PlacedStage};
    use crate::report::terminal::{self, TextStyle};
    use crate::report::{Part, RefusalReason, Stage, Units, html, markdown, write_csv};
    use crate::search::IpuCount;
    use crate::solve::Plan;
    use std::fs;
    use std::ops::Range;

    #[test]
    fn names_are_not_fetched_from_a_profile_that_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: &str| {
            let to = folder.path().join(name);
            fs::copy(Path::new("fixtures/poplar-mlp").join(name), &to).unwrap();
            to
        };
        let (profile, debug) = (copy("profile.pop"), copy("debug.cbor"));
        let analysis = Analysis::read(&profile, &debug).unwrap();
        let places = PlacementOptions::default();
        let layers = analysis
            .layers(Rules::Full, &LayerOptions::default(), &places)
            .unwrap();
        assert!(layers.split(SearchRequest::default()).is_ok());
        // The change counter of SQLite's header, bytes 24 to 27.
        let mut bytes = fs::read(&profile).unwrap();
        bytes[27] ^= 1;
        fs::write(&profile, bytes).unwrap();
        let error = layers.split(SearchRequest::default()).unwrap_err();
        assert!(format!("{error:#}").contains("changed"), "{error:#}");
        assert!(format!("{error:#}").contains("profile.pop"), "{error:#}");
    }

    /// A fixture with its limit, on 4 IPUs.
    fn on_fixture(name: &str, answer: impl Fn(&Analysis, &Layers<'_>, SearchRequest)) {
        let folder = Path::new("fixtures").join(name);
        let files = ["profile.pop", "debug.cbor"].map(|file| folder.join(file));
        let analysis = Analysis::read(&files[0], &files[1]).unwrap();
        let (regexes, places) = (LayerOptions::default(), PlacementOptions::default());
        let layers = analysis.layers(Rules::Full, &regexes, &places).unwrap();
        let request = SearchRequest {
            ipus: IpuCount::Exactly(4),
            limits: vec![analysis.model.target.bytes_per_tile],
            ..SearchRequest::default()
        };
        answer(&analysis, &layers, request);
    }

    fn report(layers: &Layers<'_>, request: &SearchRequest, learnt: Option<Learnt>) -> Report {
        let pipeline = request.pipeline.choose(&layers.analysis.model);
        let memory = layers.memory().unwrap().in_pipeline(pipeline).unwrap();
        let memory = memory.learning(learnt);
        let found = search(&memory, &layers.placement, request.clone()).unwrap();
        let (limit, detail) = (request.highest_limit(), Detail::Full);
        layers
            .report(&memory, Some(&found), limit, detail, Vec::new())
            .unwrap()
    }

    fn stages(report: &Report) -> &[Stage] {
        &report.split.as_ref().unwrap().stages
    }

    fn ranges(report: &Report) -> Vec<Range<usize>> {
        let positions = stages(report).iter().map(|stage| &stage.positions);
        let range = |own: &Range<u32>| own.start as usize..own.end as usize;
        positions.map(range).collect()
    }

    /// Where the place of a stage matters, the proof says that the number of stages
    /// is not enough, and not how many would be.
    fn without_stages_needed(mut report: Report) -> Report {
        let proof = report.proof.iter_mut();
        for own in proof.flat_map(|proof| &mut proof.bottlenecks) {
            own.stages_needed = None;
        }
        report
    }

    #[test]
    fn zeros_that_were_learnt_change_no_number() {
        let all = |request: &SearchRequest| SearchRequest {
            sweep: true,
            moves: true,
            ..request.clone()
        };
        let too_low = |request: &SearchRequest| SearchRequest {
            limits: vec![request.limits[0] / 3],
            ..request.clone()
        };
        for name in ["popart-bert-inference", "poptorch-bert-training"] {
            on_fixture(name, |_, layers, request| {
                for request in [request.clone(), all(&request), too_low(&request)] {
                    let expected = report(layers, &request, None);
                    let mut found = report(layers, &request, Some(Learnt::default()));
                    let split = found.split.as_mut().unwrap();
                    assert!(std::mem::take(&mut split.is_calibrated), "{name}");
                    for stage in &mut split.stages {
                        assert!(std::mem::take(&mut stage.fullest_tile.learnt_is_estimate));
                    }
                    let expected = without_stages_needed(expected);
                    assert!(without_stages_needed(found) == expected, "{name}");
                }
            });
        }
    }

    #[test]
    fn compiled_stages_need_what_was_predicted_and_learnt() {
        for name in ["popart-bert-inference", "poptorch-bert-training"] {
            on_fixture(name, |_, layers, request| {
                let before = report(layers, &request, None);
                let ranges = ranges(&before);
                let compiled = PlacedStage::of_split(&ranges);
                let numbered = |sign: i64| (1..).map(move |number: i64| sign * 1000 * number);
                for sign in [-1, 1] {
                    let learnt = Learnt {
                        stages: compiled.iter().cloned().zip(numbered(sign)).collect(),
                        ..Learnt::default()
                    };
                    let request = SearchRequest {
                        given: Plan::new(ranges.clone(), layers.placement.positions.len()),
                        ..request.clone()
                    };
                    let found = report(layers, &request, Some(learnt));
                    let both = stages(&before).iter().zip(stages(&found));
                    for ((before, now), learnt) in both.zip(numbered(sign)) {
                        let (before, now) = (&before.fullest_tile, &now.fullest_tile);
                        let bytes = before.bytes.saturating_add_signed(learnt);
                        assert_eq!((now.bytes, now.learnt), (bytes, learnt), "{name}");
                        assert_eq!(now.parts, before.parts, "{name}");
                        assert_eq!(now.free, before.free - learnt, "{name}");
                        assert!(!now.learnt_is_estimate, "{name}");
                    }
                    let peak = stages(&found)
                        .iter()
                        .map(|own| own.fullest_tile.bytes)
                        .max();
                    let best = found.given.map(|given| given.best_fullest_tile_bytes);
                    assert!(best <= peak, "{name}");
                }
            });
        }
    }

    #[test]
    fn a_split_that_needed_less_stays_the_best() {
        on_fixture("popart-bert-inference", |_, layers, request| {
            let before = report(layers, &request, None);
            let compiled = PlacedStage::of_split(&ranges(&before));
            let learnt = Learnt {
                stages: compiled.into_iter().map(|stage| (stage, -1000)).collect(),
                ..Learnt::default()
            };
            // It fits where nothing did before.
            let needed = stages(&before).iter().map(|own| own.fullest_tile.bytes);
            let request = SearchRequest {
                limits: vec![needed.max().unwrap() - 1000],
                ..request
            };
            assert!(report(layers, &request, None).refusal.is_some());
            let found = report(layers, &request, Some(learnt));
            assert_eq!(ranges(&found), ranges(&before));
            assert!(found.split.is_some_and(|split| split.fits));
        });
    }

    /// Stages of which the first and those between others have a number.
    fn first_and_middle() -> Learnt {
        Learnt {
            first: 1536,
            middle: -2048,
            ..Learnt::default()
        }
    }

    #[test]
    fn a_spreadsheet_has_what_was_learnt_in_its_last_column() {
        on_fixture("popart-bert-inference", |_, layers, request| {
            let found = report(layers, &request, Some(first_and_middle()));
            let learnt = stages(&found).iter().map(|stage| stage.fullest_tile.learnt);
            assert_eq!(learnt.collect::<Vec<_>>(), [1536, -2048, -2048, 0]);
            let mut cells = Vec::new();
            write_csv(&found, &mut cells).unwrap();
            let cells = String::from_utf8(cells).unwrap();
            let last = cells.lines().skip(1).take(5);
            let last: Vec<_> = last
                .filter_map(|row| Some(row.rsplit_once(',')?.1))
                .collect();
            assert_eq!(last, ["Learnt", "1536", "-2048", "-2048", "0"]);
        });
    }

    #[test]
    fn people_see_what_was_learnt() {
        on_fixture("popart-bert-inference", |_, layers, request| {
            let found = report(layers, &request, Some(first_and_middle()));
            let look = TextStyle {
                units: Units::Bytes,
                screen: None,
            };
            let answer = terminal::text(&found, &look, &[Part::Answer]);
            assert!(answer.contains("-2,048"));
            let explained = terminal::text(&found, &look, &[Part::Explanation]);
            assert!(explained.contains(", learnt -2,048"));
            let said = "what every IPU is said to need";
            assert!(answer.contains(said));
            for text in [markdown(&found), html(&found)] {
                assert!(text.contains("-2,048") && text.contains(&said[1..]));
            }
            let plain = report(layers, &request, None);
            assert!(!markdown(&plain).contains("Learnt"));
            let answer = terminal::text(&plain, &look, &[Part::Answer]);
            assert!(!answer.contains("learnt"), "{answer}");
        });
    }

    #[test]
    fn what_was_learnt_can_be_why_nothing_fits() {
        on_fixture("popart-bert-inference", |_, layers, request| {
            let learnt = Learnt {
                first: 1 << 20,
                alone: 1 << 20,
                ..Learnt::default()
            };
            let found = report(layers, &request, Some(learnt));
            let refusal = found.refusal.expect("nothing fits");
            assert_eq!(refusal.reason, RefusalReason::Learnt);
            assert!(refusal.smallest_limit > Some(1 << 20));
        });
    }
}
