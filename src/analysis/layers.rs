//! Determines the layers of a model as a request says, and replaces layers that are over the limit
//! by finer ones.

use super::{Analysis, Request};
use crate::escape::printable;
use crate::limits;
use crate::message::{Warning, usage};
use crate::model::{
    LayerOptions, LayerSource, Layering, Model, ModuleLayers, OutOn, Placement, Rules, Untied,
};
use crate::search::{SearchResult, Solver};
use crate::wording::{counted, displayed, listed};
use anyhow::{Context, Result};
use std::collections::BTreeSet;

/// A model whose operations and variables are assigned to layers.
#[derive(Debug)]
pub struct Layers<'a> {
    /// The model, and the files that it was read from.
    pub(super) analysis: &'a Analysis,
    /// The names of the layers, and the layer of each operation.
    pub layering: Layering,
    /// The positions (In, layers, Out) at which operations and variables count, in the layer order.
    pub placement: Placement,
    /// Warnings about layers that fit the model badly.
    pub warnings: Vec<Warning>,
    /// A message with the number of layers and how they were found. `None` if the request says how
    /// to find layers, or if the default regex found them.
    pub note: Option<String>,
    /// Whether the default regex found other layers at first, which were replaced by modules since
    /// one of them was over the limit. Then only `--layer-name-regex auto` gives the present layers
    /// again.
    pub are_switched: bool,
}

impl Analysis {
    /// Determines the layers that `request` asks for, and assigns operations and variables to them.
    ///
    /// # Errors
    /// If there are too many layers, if variables are shared by more distinct sets of layers than
    /// in any real model, or if `request` unties weights that no layers share.
    pub fn layers(&self, request: &Request) -> Result<Layers<'_>> {
        let layering = find_layers(&self.model, request);
        check_count(&layering)?;
        let note = layering
            .modules()
            .map(|modules| modules_note(&layering, modules));
        let note = note.filter(|_| matches!(request.layers.source, LayerSource::Best));
        let layers = self.placed(layering, request, note)?;
        check_ties(request, &layers.placement)?;
        Ok(layers)
    }

    /// Assigns operations and variables to the layers of `layering`. Operations at both ends of the
    /// model that use a weight which several layers share are first moved to In or Out. The result
    /// has `note` as its [`note`](Layers::note).
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    fn placed(
        &self,
        mut layering: Layering,
        request: &Request,
        note: Option<String>,
    ) -> Result<Layers<'_>> {
        let place = |layering: &Layering| {
            let placement = match request.rules {
                Rules::Classic => Placement::classic(&self.model, layering),
                Rules::Full => Placement::full(&self.model, layering, &request.placement),
            };
            placement.with_context(|| self.displayed())
        };
        let mut placement = place(&layering)?;
        let tied = placement.ties.iter().filter(|tie| !tie.is_untied);
        let tied: Vec<&str> = tied.map(|tie| &*tie.weight).collect();
        if let Some(free) = layering.without_tied_ends(&self.model, &tied) {
            placement = place(&free)?;
            layering = free;
        }
        Ok(Layers {
            warnings: self.model.layer_warnings(&layering, request.rules),
            placement,
            analysis: self,
            layering,
            note,
            are_switched: false,
        })
    }
}

/// Determines the layers of a request. If it names parts of a layer, the layer is cut into them. If
/// it leaves the choice of layers to the tool and names layers that only modules have, modules are
/// the layers.
fn find_layers(model: &Model, request: &Request) -> Layering {
    let names = request.named_layers();
    let with_parts = |layering: Layering| layering.with_parts(&model.operations, &names);
    let layering = with_parts(Layering::new(model, &request.layers));
    let is_best = matches!(request.layers.source, LayerSource::Best);
    // A printed command can name layers of modules, so modules replace layers without these names.
    if is_best && layering.modules().is_none() && !has_all(&layering, &names) {
        let modules = with_parts(Layering::new(model, &LayerOptions::modules()));
        if has_all(&modules, &names) {
            return modules;
        }
    }
    layering
}

/// Is each of `names` the name of a layer, `In` or `Out`?
fn has_all(layering: &Layering, names: &[&str]) -> bool {
    let is_layer = |name: &&str| layering.names[1..].iter().any(|layer| layer == name);
    let mut names = names.iter();
    names.all(|name| ["In", "Out"].contains(name) || is_layer(name))
}

impl<'a> Layers<'a> {
    /// Returns the numbers (from 0) of the IPUs on which the split of `--layers-per-ipu` runs
    /// nothing, ascending; none if the request has no such split.
    pub(crate) fn idle_ipus(&self, request: &Request) -> Vec<usize> {
        let judged = request.judged.iter();
        let idle = judged.flat_map(|judged| judged.idle_ipus(&self.placement.positions));
        idle.collect()
    }

    /// Returns finer layers if `result` found layers that are over the limit as stages of their
    /// own: these layers are cut into their parts or, if the default regex found the layers,
    /// modules replace all layers. Returns `None` if no layer is over the limit except layers that
    /// options name, if there are no finer layers, if `request` has a split to evaluate, and with
    /// the greedy solver or the classic rules.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of the finer layers than in any real model.
    pub(super) fn finer(
        &self,
        result: &SearchResult<'_>,
        request: &Request,
    ) -> Result<Option<Layers<'a>>> {
        let is_original =
            request.rules == Rules::Classic || request.options.solver == Solver::Greedy;
        if is_original || request.judged.is_some() {
            return Ok(None);
        }
        let positions = &self.placement.positions;
        // Layers that options name are not cut, since the options would no longer apply.
        let named = request.named_layers().into_iter();
        let named: Vec<usize> = named.filter_map(|name| positions.find(name)).collect();
        let mut too_large = result.positions_over_limit();
        too_large.retain(|position| !named.contains(position));
        if too_large.is_empty() {
            return Ok(None);
        }
        let finer = self.layering.refined(&self.model().operations, &too_large);
        let Some(finer) = finer.or_else(|| self.finer_modules(&too_large, request)) else {
            return Ok(None);
        };
        let names = too_large.iter().map(|&at| positions.name(at).to_string());
        let note = format!(
            "{} by the modules of the model, since {} {} over the limit",
            counted(finer.len() - 1, "layer"),
            sample(&names.collect::<Vec<_>>()),
            match too_large.len() {
                1 => "by itself is",
                _ => "by themselves are",
            }
        );
        Ok(Some(Layers {
            are_switched: self.are_switched || self.layering.modules().is_none(),
            ..self.analysis.placed(finer, request, Some(note))?
        }))
    }

    /// Returns the layers of `--layer-name-regex auto`, which come from modules, to replace those
    /// of the default regex. `too_large` has the positions of the layers over the limit. Returns
    /// `None` if the request chose the layers or names layers that modules lack, if modules are the
    /// layers already, or if they are no finer: no more of them, and none that overlaps a layer in
    /// `too_large` can be cut.
    fn finer_modules(&self, too_large: &[usize], request: &Request) -> Option<Layering> {
        let (model, layering) = (self.model(), &self.layering);
        let is_default = matches!(request.layers.source, LayerSource::Best);
        if !is_default || request.keeps_layers || layering.modules().is_some() {
            return None;
        }
        let modules = Layering::new(model, &LayerOptions::modules());
        if !has_all(&modules, &request.named_layers()) {
            return None;
        }
        let pairs = layering.layers.iter().zip(&modules.layers);
        let holding: BTreeSet<usize> = pairs
            .filter(|&(&layer, _)| layer > 0 && too_large.contains(&(layer as usize)))
            .map(|(_, &module)| module as usize)
            .collect();
        let is_finer = modules.len() > layering.len();
        let have_parts = || {
            let holding: Vec<usize> = holding.into_iter().collect();
            modules.refined(&model.operations, &holding).is_some()
        };
        (is_finer || have_parts()).then_some(modules)
    }
}

/// Returns the note for layers that come from modules or, if the profile names no modules, from the
/// flow of data: their number and how they were found. `modules` are the modules of `layering`.
fn modules_note(layering: &Layering, modules: &ModuleLayers) -> String {
    let layers = counted(layering.len() - 1, "layer");
    if modules.are_by_flow() {
        return format!(
            "{layers}, runs of steps between which little data flows, since the profile names no \
             modules; set --layer-name-regex if other names give the layers"
        );
    }
    format!(
        "{layers} by the modules of the model ({}), which describe it better than the default \
         --layer-name-regex",
        sample(&layering.names[1..])
    )
}

/// Returns an error if there are more than [`limits::LAYERS`] layers.
fn check_count(layering: &Layering) -> Result<()> {
    let layers = layering.len() - 1;
    if layers <= limits::LAYERS {
        return Ok(());
    }
    let names = layering.names[1..].iter().take(3);
    let names: Vec<String> = names.map(|name| displayed(name)).collect();
    Err(usage(format!(
        "the layer regex {} finds {layers} layers ({}, ...), and {} are the maximum; set \
         --layer-name-regex to a regex whose capture group is the same for all operations of a \
         layer",
        regex(layering),
        names.join(", "),
        limits::LAYERS
    )))
}

/// Returns an error if `--untie` names a weight that no layers share, or if `--out-on` is given
/// with the classic rules, which have no Out.
fn check_ties(request: &Request, placement: &Placement) -> Result<()> {
    if request.placement.out_on != OutOn::Auto && placement.rules == Rules::Classic {
        return Err(usage(
            "--out-on needs --memory-model full, since the classic model has no Out; leave one of \
             them out",
        ));
    }
    let Untied::Weights(named) = &request.placement.untie else {
        return Ok(());
    };
    let is_tied = |name: &String| placement.ties.iter().any(|tie| tie.weight == *name);
    let Some(unknown) = named.iter().find(|name| !is_tied(name)) else {
        return Ok(());
    };
    let unknown = printable(unknown);
    if placement.ties.is_empty() {
        return Err(usage(format!(
            "--untie {unknown}: no weight of this model is tied; leave the option out"
        )));
    }
    let names = placement.ties.iter().map(|tie| printable(&tie.weight));
    Err(usage(format!(
        "--untie: there is no tied weight {unknown}; name one of {}",
        listed(&names.collect::<Vec<_>>())
    )))
}

fn regex(layering: &Layering) -> &str {
    layering.regex().map_or("", |regex| regex.as_str())
}

/// Lists names in one text, separated by commas; of more than five, only the first three and the
/// last one.
fn sample(names: &[String]) -> String {
    let shown = names.iter().map(|name| displayed(name));
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [first, second, third, .., last] if shown.len() > 5 => {
            format!("{first}, {second}, {third}, ..., {last}")
        }
        all => all.join(", "),
    }
}

/// Returns the error that no operation matches the layer regex, with a suggestion how to find
/// layers.
pub(super) fn no_layers(model: &Model, layering: &Layering) -> anyhow::Error {
    let regex = regex(layering);
    let modules = Layering::new(model, &LayerOptions::modules());
    if modules.is_empty() {
        return usage(format!(
            "no operation matched the layer regex {regex}, and the modules of the model are \
             unknown, so there are no layers to split between; set --layer-name-regex to a regex \
             whose capture group is the layer, such as 'layer(\\d+)'{}",
            names(model)
        ));
    }
    usage(format!(
        "no operation matched the layer regex {regex}, so there are no layers to split between; set \
         --layer-name-regex to auto, which finds {} by the modules of the model ({})",
        counted(modules.len() - 1, "layer"),
        sample(&modules.names[1..])
    ))
}

/// Maximum number of operation names in the error about missing layers.
const NAMES_SHOWN: usize = 10;

/// Returns a text with up to [`NAMES_SHOWN`] distinct operation names, each after a line break and
/// two spaces.
fn names(model: &Model) -> String {
    let mut names: Vec<String> = Vec::new();
    for operation in &model.operations {
        let name = format!("\n  {}", displayed(&operation.name));
        let is_named = !operation.is_tensor && !operation.is_anonymous;
        if is_named && !names.contains(&name) && names.len() < NAMES_SHOWN {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => "\nthe model has no operations with a name".to_string(),
        names => format!("\nsome names in this model:{}", names.concat()),
    }
}
