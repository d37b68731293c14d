//! The profile of a pipelined compilation: tiles of all IPUs numbered through.
//!
//! Its steps are the moments of a period, those of all IPUs from their own first
//! one on, then what runs before and after all micro-batches. At these steps
//! nothing runs: the operations of each IPU follow after them, with the contexts
//! that they have in the `debug.cbor` of the compilation for one IPU. That file, which
//! [`write`](crate::write) writes, belongs to this profile too.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;

use super::model::{PipelineModel, StageTruth};
use super::options::{PLANTED, PipelineOptions, ProfileForm, Schedule, planted_on_tiles};
use super::programs::Programs;
use super::variables::{ALWAYS, Row, Variables};
use crate::memory_tables::{self, Truth};
use crate::overhead::{self, category};
use crate::profile_writer::write_with;
use crate::variable_tables::{self, Tiles, categories, classes, names};

impl PipelineModel {
    /// Writes the profile of the pipelined compilation with these cuts in a form, and gives
    /// what it needs. Nothing may have this name yet.
    pub fn write_profile(
        &self,
        path: &Path,
        cuts: &[u32],
        options: &PipelineOptions,
        form: &ProfileForm,
    ) -> anyhow::Result<Vec<StageTruth>> {
        anyhow::ensure!(
            !options.elsewhere.is_any(),
            "profiles of pipelines with state elsewhere are not written"
        );
        let mut truth = self.simulate(cuts, options);
        let mut variables = Variables::new(self, cuts, options);
        self.plant(options.schedule, &mut variables, &mut truth);
        let listed = if form.lists_replicas {
            form.replicas
        } else {
            1
        };
        let ipus = variables.ipus.iter().map(|ipu| ipu.places).collect();
        let programs = Programs::new(&self.plan, ipus, listed as usize, variables.steps);
        let tree = programs.tree();
        variables.classes.ranges[ALWAYS as usize] = vec![(0, tree.steps.len() as u32)];
        let ipus = (truth.len() as u32, form.replicas);
        let has = [form.lists_variables, false, form.execution];
        write_with(path, &self.plan.settings, ipus, has, |connection| {
            programs.write(&tree, connection)?;
            categories(&self.plan, connection)?;
            if form.lists_variables {
                self.names(&variables, connection)?;
                classes(&variables.classes, &self.plan.settings, connection)?;
            }
            let classes_and_steps = (&variables.classes, tree.steps.len());
            let rows = form.lists_variables.then_some(connection);
            let tiles = Tiles::new(&self.plan, classes_and_steps, rows);
            let sums = variables.write(tiles, programs.listed_ipus(), &mut truth)?;
            memory_tables::write(&sums, connection)?;
            if form.execution {
                let cycles = programs.execute(connection)?;
                for (stage, cycles) in truth.iter_mut().zip(cycles) {
                    stage.cycles = cycles;
                }
            }
            Ok(truth)
        })
    }

    /// Adds the planted code of each IPU.
    fn plant(&self, schedule: Schedule, variables: &mut Variables, truth: &mut [StageTruth]) {
        let ipus = truth.len() as u32;
        for (ipu, stage) in truth.iter_mut().enumerate() {
            let is_stashing = stage.stash.iter().any(|&bytes| bytes > 0);
            let has_restores = schedule == Schedule::Popart && is_stashing;
            for planted in PLANTED {
                let by_tile = match planted.0 {
                    category::INTERNAL_EXCHANGE_CODE if !has_restores => vec![0; stage.tiles.len()],
                    _ => planted_on_tiles(planted, &self.plan.settings, (ipu as u32, ipus)),
                };
                variables.plant(ipu, (planted.0, planted.1), &by_tile);
                for (sum, bytes) in stage.tiles.iter_mut().zip(&by_tile) {
                    *sum += bytes;
                }
                stage
                    .planted
                    .insert(&overhead::categories()[planted.0], by_tile);
            }
        }
    }

    /// Writes names, and the contexts of those that the model has.
    fn names(&self, variables: &Variables, connection: &Connection) -> rusqlite::Result<()> {
        let groups = self.plan.groups.iter().enumerate();
        let contexts = groups.map(|(index, group)| {
            let context = self.plan.context_of_group(group, index);
            (group.name.as_str(), context)
        });
        let contexts: HashMap<&str, u32> = contexts.collect();
        let named = variables.names.iter().map(|(text, is_user)| {
            let context = contexts.get(text.as_str()).filter(|_| *is_user);
            (text.as_str(), *is_user, context.copied())
        });
        names(named, connection)
    }
}

impl Variables {
    /// Adds the variables of the IPUs that are listed, whose tiles are numbered through, and adds to
    /// the truth of each IPU what is live on a tile at its fullest step.
    fn write<'a>(
        &self,
        mut tiles: Tiles<'a>,
        listed: usize,
        truth: &mut [StageTruth],
    ) -> rusqlite::Result<Truth<'a>> {
        let row = |&(name, variable): &Row| {
            let is_user = self.names[name].1;
            variable_tables::Row {
                name,
                suffix: if is_user { "0" } else { "" }.to_owned(),
                unlowered: is_user.then_some(name),
                variable,
            }
        };
        for (number, ipu) in self.ipus.iter().enumerate().cycle().take(listed) {
            let stage = &mut truth[number];
            for (tile, variables) in ipu.tiles.iter().enumerate() {
                let rows: Vec<_> = variables.iter().map(row).collect();
                let recorded = tiles.add(&rows, |_| stage.gaps[tile])?;
                if stage.categories.len() == tile {
                    self.count(variables, recorded.peak_step, stage);
                }
            }
        }
        Ok(tiles.sums)
    }
}
