//! Finds the layers of a model in the way that the request asks for, and divides layers into finer
//! layers if no split of whole layers fits.

use super::{Analysis, Request};
use crate::{
    escape::printable,
    limits,
    message::{Warning, usage},
    model::{
        LayerOptions, LayerSource, Layering, Model, OutOn, Placement, PlacementOptions, Rules,
    },
    search::Solver,
    wording::{counted, displayed, join, listed},
};
use anyhow::{Context, Result};
use rustc_hash::FxHashSet;

/// A model whose operations and variables are assigned to layers.
#[derive(Debug)]
pub struct Layers<'a> {
    /// The model that the layers divide, and the files that it was read from.
    pub(super) analysis: &'a Analysis,
    /// The names of the layers, and the layer that each operation belongs to.
    pub layering: Layering,
    /// The positions (In, layers, Out) to which each operation and variable is attributed, from
    /// which the memory of a range of positions follows.
    pub placement: Placement,
    /// Warnings that the layers do not match the structure of the model well.
    pub warnings: Vec<Warning>,
    /// A message with the number of layers and how they were found. `None` if the user chose how to
    /// find layers, or if the default regex found them.
    pub note: Option<String>,
    /// Whether modules replaced the layers that the default regex finds, because no split of the
    /// regex's layers fits. If so, commands that name modules as layers need `--layer-name-regex
    /// auto`.
    pub are_switched: bool,
    /// Whether this is the finest layering that the search tries: layers are divided into the
    /// modules inside them.
    pub(super) are_parts: bool,
    pub(super) options: PlacementOptions,
}

impl Analysis {
    /// Finds the layers that `request` asks for, and assigns operations and variables to them.
    ///
    /// # Errors
    /// If there are too many layers, if variables are shared by more distinct sets of layers than
    /// in any real model, or if `request` unties weights that no layers or parts of layers share.
    pub fn layers(&self, request: &Request) -> Result<Layers<'_>> {
        let layering = find_layers(&self.model, request);
        if layering.len() - 1 > limits::LAYERS {
            let names = layering.names[1..].iter().take(3);
            return Err(usage(format!(
                "the layer regex {} finds {} layers ({}, ...), and {} are the maximum; set \
                 --layer-name-regex to a regex whose capture group is the same for all operations \
                 of a layer",
                regex(&layering),
                layering.len() - 1,
                join(names.map(|name| displayed(name)), ", "),
                limits::LAYERS
            )));
        }
        let mut layers = self.placed(layering, request)?;
        if is_best(request) {
            layers.note = modules_note(&layers.layering);
        }
        self.check_ties(request, &layers)?;
        Ok(layers)
    }

    /// Assigns operations and variables to the layers of `layering`. Operations at the beginning or
    /// end of the model that use a tied weight (shared by several layers) are moved to In or Out
    /// first, so that the weight ties fewer layers to one stage.
    fn placed(&self, mut layering: Layering, request: &Request) -> Result<Layers<'_>> {
        let place = |layering: &Layering| {
            let placement = match request.rules {
                Rules::Classic => Placement::classic(&self.model, layering),
                Rules::Full => Placement::full(&self.model, layering, &request.placement),
            };
            placement.context(self.displayed())
        };
        let mut placement = place(&layering)?;
        let tied: Vec<&str> = placement
            .ties
            .iter()
            .filter(|tie| !tie.is_untied)
            .map(|tie| &*tie.weight)
            .collect();
        if let Some(free) = layering.without_tied_ends(&self.model, &tied) {
            layering = free.with_named(&self.model, &request.named_layers());
            placement = place(&layering)?;
        }
        Ok(Layers {
            warnings: self.model.layer_warnings(&layering, request.rules),
            placement,
            analysis: self,
            note: None,
            layering,
            are_switched: false,
            are_parts: false,
            options: request.placement.clone(),
        })
    }
}

/// Finds the layers for `request`. Divides a layer into the modules inside it if options name one
/// of these modules.
fn find_layers(model: &Model, request: &Request) -> Layering {
    let names = request.named_layers();
    let with_named = |layering: Layering| layering.with_named(model, &names);
    let layering = with_named(Layering::new(model, &request.layers));
    // The user may repeat a command that a report printed, in which modules are named as layers. If
    // the regex does not find these layers, use the modules of the model as layers.
    if is_best(request) && layering.modules().is_none() && !has_all(&layering, &names) {
        let modules = with_named(by_modules(model));
        if has_all(&modules, &names) {
            return modules;
        }
    }
    layering
}

/// Returns whether the user leaves open how to find layers, by a regex or by modules.
fn is_best(request: &Request) -> bool {
    matches!(request.layers.source, LayerSource::Best)
}

/// Returns whether `layering` has a layer for each of `names`. `In` and `Out` need none.
fn has_all(layering: &Layering, names: &[String]) -> bool {
    names.iter().all(|name| {
        ["In", "Out"].contains(&&**name) || layering.places_named(name).next().is_some()
    })
}

impl<'a> Layers<'a> {
    /// Returns the finer layers for attempt `number` (from 1), after no split of the requested
    /// layers fits:
    /// - first, the modules of the model, if they can replace the requested layers
    /// - last, the modules inside the layers of the attempt before
    ///
    /// Returns `None` after the last attempt, and always for the classic memory model and the
    /// greedy solver.
    pub(super) fn finer_layers(&self, request: &Request, number: usize) -> Result<Option<Self>> {
        if request.rules == Rules::Classic || request.options.solver == Solver::Greedy {
            return Ok(None);
        }
        // Modules replace the layers only under three conditions: the default regex found the
        // layers, there are no fewer modules than layers, and each layer that the options name is a
        // module.
        let is_switched = self.layering.modules().is_none();
        let modules = (is_best(request) && is_switched)
            .then(|| by_modules(self.model()))
            .filter(|modules| modules.len() >= self.layering.len())
            .filter(|modules| has_all(modules, &request.named_layers()));
        let (layering, are_parts) = match (number, modules) {
            (1, Some(modules)) => (Some(modules), false),
            (2, Some(modules)) => (self.analysis.parts(&modules, request), true),
            (1, None) => (self.analysis.parts(&self.layering, request), true),
            _ => return Ok(None),
        };
        layering
            .map(|layering| {
                self.analysis
                    .finer(layering, request, is_switched, are_parts)
            })
            .transpose()
    }

    /// Returns whether `other` has the same layers as `self`, with the same operations in each
    /// layer, and the same options `--out-on` and `--untie`.
    pub(super) fn are_as(&self, other: &Self) -> bool {
        let (one, two) = (&self.layering, &other.layering);
        one.layers == two.layers && one.names == two.names && self.options == other.options
    }
}

impl Analysis {
    /// Returns an error if `--untie` names a weight that no layers share, not even after layers are
    /// divided into modules, or if `--out-on` is combined with the classic memory model, which has
    /// no Out.
    fn check_ties(&self, request: &Request, whole: &Layers<'_>) -> Result<()> {
        let placement = &whole.placement;
        if request.placement.out_on != OutOn::Auto && placement.rules == Rules::Classic {
            return Err(usage(
                "--out-on needs --memory-model full, since the classic model has no Out; leave one \
                 of them out",
            ));
        }
        if request.placement.unties_all {
            return Ok(());
        }
        let untied = |placement: &Placement, mut names: Vec<String>| {
            names.retain(|name| placement.ties.iter().all(|tie| tie.weight != *name));
            names
        };
        let (mut unknown, mut number) = (untied(placement, request.placement.untie.clone()), 1);
        while let Some(first) = unknown.first() {
            let Some(finer) = whole.finer_layers(request, number)? else {
                let (unknown, ties) = (printable(first), &placement.ties);
                return Err(usage(if ties.is_empty() {
                    format!(
                        "--untie {unknown}: no weight of this model is tied; leave the option out"
                    )
                } else {
                    format!(
                        "--untie: there is no tied weight {unknown}; name one of {}",
                        listed(ties.iter().map(|tie| printable(&tie.weight)))
                    )
                }));
            };
            unknown = untied(&finer.placement, unknown);
            number += 1;
        }
        Ok(())
    }

    /// Returns the layers of `request`, after dividing each layer that contains one of the modules
    /// `names` into its modules.
    pub(super) fn layers_with_parts(
        &self,
        request: &Request,
        names: &[String],
    ) -> Result<Layers<'_>> {
        let mut base = find_layers(&self.model, request);
        let is_switched = base.modules().is_none();
        if is_switched {
            base = by_modules(&self.model);
        }
        self.finer(
            base.with_named(&self.model, names),
            request,
            is_switched,
            false,
        )
    }

    fn finer(
        &self,
        layering: Layering,
        request: &Request,
        is_switched: bool,
        are_parts: bool,
    ) -> Result<Layers<'_>> {
        let layers = self.placed(layering, request)?;
        Ok(Layers {
            note: Some(format!(
                "{} by the modules of the model, since whole layers do not fit",
                counted(layers.layering.len() - 1, "layer")
            )),
            are_switched: is_switched,
            are_parts,
            ..layers
        })
    }

    /// Divides layers into the modules inside them, again and again while there are at most 400
    /// layers; `None` if no layer can be divided. Layers that options name stay whole, or the
    /// options would no longer apply.
    fn parts(&self, layering: &Layering, request: &Request) -> Option<Layering> {
        let named = request.named_layers();
        let once = |layering: &Layering| {
            let whole: FxHashSet<usize> = named
                .iter()
                .flat_map(|name| layering.places_named(name))
                .collect();
            layering
                .refined(&self.model.operations, |position| !whole.contains(position))
                .filter(|refined| refined.len() <= MAX_PARTS)
        };
        std::iter::successors(once(layering), once).last()
    }
}

/// Maximum number of layers after dividing layers. With more layers, computing the costs of all
/// ranges of layers takes longer than reading the profile.
const MAX_PARTS: usize = 400;

/// Returns a message on layers that were found without a regex, from modules or, if the profile
/// names no modules, from the flow of data. Returns `None` for layers that a regex found.
fn modules_note(layering: &Layering) -> Option<String> {
    let layers = counted(layering.len() - 1, "layer");
    Some(if layering.modules()?.are_by_flow() {
        format!(
            "{layers}, runs of steps between which little data flows, since the profile names no \
             modules; set --layer-name-regex if other names give the layers"
        )
    } else {
        format!(
            "{layers} by the modules of the model ({}), which describe it better than the default \
             --layer-name-regex",
            sample(&layering.names[1..])
        )
    })
}

fn by_modules(model: &Model) -> Layering {
    Layering::new(model, &LayerOptions::modules())
}

fn regex(layering: &Layering) -> &str {
    layering.regex().map_or("", |regex| regex.as_str())
}

/// Joins layer names by commas for a message; of more than five names, shows the first three and
/// the last.
fn sample(names: &[String]) -> String {
    let shown = |names: &[String]| join(names.iter().map(|name| displayed(name)), ", ");
    match names {
        [first @ .., last] if names.len() > 5 => {
            format!("{}, ..., {}", shown(&first[..3]), displayed(last))
        }
        all => shown(all),
    }
}

pub fn no_layers(model: &Model, layering: &Layering) -> anyhow::Error {
    let regex = regex(layering);
    let modules = by_modules(model);
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

const NAMES_SHOWN: usize = 10;

/// Lists up to ten distinct operation names for an error message, one on each line.
fn names(model: &Model) -> String {
    let mut names: Vec<String> = Vec::new();
    for operation in &model.operations {
        let name = format!("\n  {}", displayed(&operation.name));
        if operation.is_named() && !names.contains(&name) && names.len() < NAMES_SHOWN {
            names.push(name);
        }
    }
    if names.is_empty() {
        return "\nthe model has no operations with a name".to_string();
    }
    format!("\nsome names in this model:{}", names.concat())
}
