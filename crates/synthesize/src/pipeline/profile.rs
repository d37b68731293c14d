//! The profile of a pipelined compilation: tiles of all IPUs numbered through.
//!
//! Its steps are the moments of a period, those of all IPUs from their own first
//! one on, then what runs before and after all micro-batches. At these steps
//! nothing runs: the operations of each IPU follow after them, with the contexts
//! that they have in the `debug.cbor` of the compilation for one IPU. That file, which
//! [`write`](crate::write) writes, belongs to this profile too.

use std::collections::HashMap;
use std::path::Path;

use super::form::{LoweredVariables, PLANTED, ProfileForm, planted_on_tiles};
use super::options::{PipelineOptions, Schedule};
use super::programs::Programs;
use super::variables::{IpuVariables, Row, Variables};
use super::{PipelineModel, StageTruth, execution};
use crate::encoding::encode_list;
use crate::liveness::{Classes, Variable};
use crate::memory_tables::{self, Truth};
use crate::overhead::{CATEGORIES, category};
use crate::profile_writer;
use crate::schema::{self, insert};
use crate::variable_tables;
use crate::variable_tables::{categories, variables_of_tile};

/// Tables that are there only with lowered variables.
const OF_VARIABLES: &str = "vars_info vars_string_table eq_classes eq_class_step unlowered_vars \
     equivalence_class_interference allocation_order_by_tile var_bytes_by_eq_class";

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
        let ipus = truth.len() as u32;
        for (ipu, stage) in (0..).zip(&mut truth) {
            let is_stashing = stage.stash.iter().any(|&bytes| bytes > 0);
            let has_restores = options.schedule == Schedule::Popart && is_stashing;
            for planted in PLANTED {
                let by_tile = match planted.0 {
                    category::INTERNAL_EXCHANGE_CODE if !has_restores => vec![0; stage.tiles.len()],
                    _ => planted_on_tiles(planted, &self.plan.settings, (ipu, ipus)),
                };
                variables.plant(ipu as usize, (planted.0, planted.1), &by_tile);
                for (sum, bytes) in stage.tiles.iter_mut().zip(&by_tile) {
                    *sum += bytes;
                }
                stage.planted.insert(CATEGORIES[planted.0], by_tile);
            }
        }
        let replicas = if form.lists_replicas {
            form.replicas
        } else {
            1
        };
        let mut connection = profile_writer::create(path, self.plan.settings.page_size)?;
        let transaction = connection.transaction()?;
        let programs = Programs::new(&self.plan, variables, replicas, &transaction);
        schema::create(&transaction)?;
        programs.target(form)?;
        programs.write()?;
        programs.memory(form.lowered, &mut truth)?;
        if form.execution {
            let cycles = execution::write(&programs)?;
            for (stage, cycles) in truth.iter_mut().zip(cycles) {
                stage.cycles = cycles;
            }
        }
        if form.lowered == LoweredVariables::Missing {
            for table in OF_VARIABLES.split(' ') {
                transaction.execute_batch(&format!("DROP TABLE {table}"))?;
            }
        }
        transaction.commit()?;
        Ok(truth)
    }
}

impl Programs<'_> {
    /// Writes the target of the profile, its compiler, and its options.
    fn target(&self, form: &ProfileForm) -> rusqlite::Result<()> {
        let settings = &self.plan.settings;
        let ipus = (self.ipus(), form.replicas);
        profile_writer::target(settings, ipus, "IPU", self.connection)?;
        let has_variables = form.lowered == LoweredVariables::Listed;
        let has = [has_variables, false, form.execution];
        profile_writer::parameters(settings, has, self.connection)
    }

    /// Writes all variables, and the sums over them of each tile.
    fn memory(&self, lowered: LoweredVariables, truth: &mut [StageTruth]) -> rusqlite::Result<()> {
        categories(self.plan, self.connection)?;
        if lowered == LoweredVariables::Listed {
            self.names()?;
            self.classes()?;
            self.rows()?;
        }
        let settings = &self.plan.settings;
        let mut all = Truth::new(
            self.steps(),
            settings.plain_bytes(),
            settings.bytes_per_tile,
        );
        let mut by_ipu: Vec<Vec<i64>> = Vec::new();
        for (number, ipu) in self.listed() {
            let before = all.deltas.clone();
            let mut stage = StageTruth::default();
            for (rows, &gap) in ipu.tiles.iter().zip(&truth[number].gaps) {
                let lowered: Vec<Variable> = rows.iter().map(|row| row.1).collect();
                let tile = all.add(&self.variables.classes, &lowered, |_| gap);
                self.variables.count(rows, tile.peak_step, &mut stage);
            }
            truth[number].categories = stage.categories;
            truth[number].accumulators = stage.accumulators;
            let deltas = all.deltas.iter().zip(&before);
            by_ipu.push(deltas.map(|(after, before)| after - before).collect());
        }
        memory_tables::by_tile(&all, self.connection)?;
        memory_tables::by_category(&all, self.connection)?;
        let ipus = (0..).zip(&by_ipu);
        let ipus = ipus.map(|(ipu, deltas)| (Some(ipu), &deltas[..self.steps()]));
        let deltas: Vec<_> = ipus.chain([(None, &all.deltas[..self.steps()])]).collect();
        memory_tables::by_step(&deltas, self.connection)
    }

    /// The IPUs that the profile lists: number in the replica, and variables.
    fn listed(&self) -> impl Iterator<Item = (usize, &IpuVariables)> {
        let ipus = self.variables.ipus.iter().enumerate();
        ipus.cycle().take(self.listed_ipus() as usize)
    }

    /// Names, and the contexts of those that the model has.
    fn names(&self) -> rusqlite::Result<()> {
        let groups = self.plan.groups.iter().enumerate();
        let contexts = groups.map(|(index, group)| {
            let context = self.plan.context_of_group(group, index);
            (group.name.as_str(), context)
        });
        let contexts: HashMap<&str, u32> = contexts.collect();
        for (id, (text, is_user)) in self.variables.names.iter().enumerate() {
            let end = if *is_user { "#" } else { "" };
            let name = (id, format!("{text}{end}"));
            insert(self.connection, "vars_string_table", [name])?;
            if *is_user {
                insert(self.connection, "unlowered_vars", [(id, text)])?;
                let context = contexts.get(text.as_str());
                let rows = context.map(|&context| (id, encode_list(&[context.into()])));
                insert(self.connection, "debug_ids", rows)?;
            }
        }
        Ok(())
    }

    fn classes(&self) -> rusqlite::Result<()> {
        let Classes { ranges, always, .. } = &self.variables.classes;
        for (id, (ranges, is_always)) in ranges.iter().zip(always).enumerate().skip(1) {
            insert(self.connection, "eq_classes", [(id, is_always)])?;
            let rows = ranges.iter().map(|&(from, to)| (id, from, to));
            insert(self.connection, "eq_class_step", rows)?;
        }
        Ok(())
    }

    /// One row for each variable; tiles are numbered through.
    fn rows(&self) -> rusqlite::Result<()> {
        let mut first = 0;
        let row = |&(name, variable): &Row| {
            let is_user = self.variables.names[name].1;
            variable_tables::Row {
                name,
                suffix: if is_user { "0" } else { "" }.to_owned(),
                unlowered: is_user.then_some(name),
                variable,
            }
        };
        let tiles = self.listed().flat_map(|(_, ipu)| &ipu.tiles);
        for (rows, tile) in tiles.zip(0..) {
            let rows: Vec<_> = rows.iter().map(row).collect();
            variables_of_tile((tile, first), &rows, self.plan, self.connection)?;
            first += rows.len() as u32;
        }
        Ok(())
    }
}
