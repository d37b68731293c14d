//! The profile of a pipelined compilation: tiles of all IPUs numbered through.
//!
//! Its steps are the moments of a period, those of all IPUs from their own first
//! one on, then what runs before and after all micro-batches. At these steps
//! nothing runs: the operations of each IPU follow after them, with the contexts
//! that they have in the `debug.cbor` of the compilation for one IPU. That file,
//! which [`write_with_pipeline`](crate::write_with_pipeline) writes, belongs to
//! this profile too.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;

use super::form::{LoweredVariables, Place, PlantedTruth, ProfileForm};
use super::listing::Listing;
use super::options::{PipelineOptions, Schedule};
use super::programs::Programs;
use super::variables::{self, IpuVariables, Row, Variables};
use super::{PipelineModel, PipelineTruth, TileContent, execution};
use crate::encoding::encode_list;
use crate::liveness::{Classes, Variable};
use crate::plan::Plan;
use crate::profile_writer::{self, Device};
use crate::schema::{self, insert};
use crate::settings::Settings;
use crate::truth::Truth;
use crate::variable_tables::{categories, class_ranges, variables_of_tile};
use crate::{memory_tables, variable_tables};

/// Tables that are there only with lowered variables.
const OF_VARIABLES: [&str; 8] = [
    "vars_info",
    "vars_string_table",
    "eq_classes",
    "eq_class_step",
    "equivalence_class_interference",
    "allocation_order_by_tile",
    "unlowered_vars",
    "var_bytes_by_eq_class",
];

impl PipelineModel {
    /// Writes the profile of the pipelined compilation with these cuts in a form, and gives
    /// what it needs. Nothing may have this name yet.
    pub fn write_profile(
        &self,
        path: &Path,
        cuts: &[u32],
        options: &PipelineOptions,
        form: &ProfileForm,
    ) -> anyhow::Result<PipelineTruth> {
        anyhow::ensure!(
            !options.elsewhere.is_any(),
            "profiles of pipelines with state elsewhere are not written"
        );
        let mut truth = self.simulate(cuts, options);
        let mut variables = variables::of(self, cuts, options);
        let ipus = truth.stages.len() as u32;
        for (stage, ipu) in truth.stages.iter_mut().zip(0..) {
            let place = Place {
                ipu,
                ipus,
                tiles: self.graph.tiles,
            };
            let random = self.plan.settings.random;
            let restores = options.schedule == Schedule::Popart && stage.slots > 0;
            stage.planted = PlantedTruth::new(random, place, form.planted, restores);
            let tiles = stage.tiles.iter_mut().enumerate();
            tiles.for_each(|(tile, bytes)| *bytes += stage.planted.bytes(tile));
            variables.plant(ipu as usize, &stage.planted);
        }
        let listing = Listing {
            tiles: self.graph.tiles,
            ipus: variables.ipus.len() as u32,
            replicas: if form.lists_replicas {
                form.replicas
            } else {
                1
            },
        };
        let programs = Programs::new(&self.plan, variables, listing);
        let mut connection = profile_writer::create(path, self.plan.settings.page_size)?;
        let transaction = connection.transaction()?;
        self.tables(&programs, form, &mut truth, &transaction)?;
        transaction.commit()?;
        Ok(truth)
    }

    fn tables(
        &self,
        programs: &Programs,
        form: &ProfileForm,
        truth: &mut PipelineTruth,
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        schema::create(connection)?;
        self.target(programs, form, connection)?;
        programs.write(connection)?;
        let has_variables = form.lowered == LoweredVariables::Listed;
        self.memory(programs, has_variables, truth, connection)?;
        if form.execution {
            let cycles = execution::write(programs, connection)?;
            for (stage, cycles) in truth.stages.iter_mut().zip(cycles) {
                stage.cycles = cycles;
            }
        }
        if form.lowered == LoweredVariables::Missing {
            for table in OF_VARIABLES {
                connection.execute_batch(&format!("DROP TABLE {table}"))?;
            }
        }
        Ok(())
    }

    /// The target of the profile, its compiler, and its options.
    fn target(
        &self,
        programs: &Programs,
        form: &ProfileForm,
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let settings = Settings {
            // The profile has none.
            no_cycle_estimates: true,
            ..self.plan.settings.clone()
        };
        let device = Device {
            ipus: programs.listing.ipus,
            replicas: form.replicas,
            kind: "IPU",
        };
        profile_writer::target(&settings, &device, connection)?;
        profile_writer::software(connection)?;
        let has_variables = form.lowered == LoweredVariables::Listed;
        let has = [has_variables, form.execution];
        profile_writer::parameters(&settings, has, connection)?;
        graph_info(programs, connection)
    }

    /// All variables, and what they add up to.
    fn memory(
        &self,
        programs: &Programs,
        has_variables: bool,
        truth: &mut PipelineTruth,
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let variables = &programs.variables;
        categories(|category| category, connection)?;
        if has_variables {
            names(variables, &self.plan, connection)?;
            write_classes(&variables.classes, connection)?;
            rows(programs, connection)?;
        }
        let by_ipu = self.sums(programs, truth, connection)?;
        let all = by_ipu.iter().fold(Vec::new(), |all, ipu| match all.len() {
            0 => ipu.clone(),
            _ => all.iter().zip(ipu).map(|(all, ipu)| all + ipu).collect(),
        });
        let ipus = by_ipu.iter().zip(0..);
        let ipus = ipus.map(|(deltas, ipu)| (Some(ipu), &deltas[..]));
        let deltas: Vec<_> = ipus.chain([(None, &all[..])]).collect();
        memory_tables::by_step(&deltas, connection)
    }

    /// Sums over the variables of each tile. Gives by IPU how the live bytes
    /// change from step to step.
    fn sums(
        &self,
        programs: &Programs,
        truth: &mut PipelineTruth,
        connection: &Connection,
    ) -> rusqlite::Result<Vec<Vec<i64>>> {
        let steps = programs.steps() as usize;
        let (plain, bytes) = (
            self.plan.settings.plain_bytes(),
            self.plan.settings.bytes_per_tile,
        );
        let mut all = Truth::new(steps, plain, bytes);
        let mut by_ipu: Vec<Vec<i64>> = Vec::new();
        for (number, ipu) in listed(programs) {
            let stage = &mut truth.stages[number];
            let before = all.deltas.clone();
            stage.contents.clear();
            for (rows, &gap) in ipu.tiles.iter().zip(&stage.gaps) {
                let lowered: Vec<Variable> = rows.iter().map(|row| row.variable).collect();
                let step = all
                    .add(&programs.variables.classes, &lowered, |_| gap)
                    .peak_step;
                let content = TileContent::new(&programs.variables, rows, step, gap);
                stage.contents.push(content);
            }
            let deltas = all.deltas.iter().zip(&before).take(steps);
            by_ipu.push(deltas.map(|(after, before)| after - before).collect());
        }
        memory_tables::by_tile(&all, connection)?;
        memory_tables::by_category(&all, connection)?;
        Ok(by_ipu)
    }
}

/// The IPUs that the profile lists: number in the replica, and variables.
fn listed<'a>(programs: &'a Programs) -> impl Iterator<Item = (usize, &'a IpuVariables)> {
    let ipus = programs.variables.ipus.iter().enumerate();
    let all = programs.listing.all_ipus() as usize;
    ipus.cycle().take(all)
}

fn graph_info(programs: &Programs, connection: &Connection) -> rusqlite::Result<()> {
    let tiles = listed(programs).flat_map(|(_, ipu)| &ipu.tiles);
    let count: usize = tiles.map(Vec::len).sum();
    insert(
        connection,
        "graph_info",
        [(programs.compute_sets(), 0, count, 0)],
    )
}

/// Names, and the contexts of those that the model has.
fn names(variables: &Variables, plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let groups = plan.groups.iter().enumerate();
    let contexts: HashMap<&str, u32> = groups
        .map(|(index, group)| (group.name.as_str(), plan.context_of_group(group, index)))
        .collect();
    for (id, name) in variables.names.iter().enumerate() {
        let text = &name.text;
        let end = if name.is_user { "#" } else { "" };
        insert(
            connection,
            "vars_string_table",
            [(id, format!("{text}{end}"))],
        )?;
        if name.is_user {
            insert(connection, "unlowered_vars", [(id, text)])?;
            let context = contexts.get(text.as_str());
            let rows = context.map(|&context| (id, encode_list(&[context.into()])));
            insert(connection, "debug_ids", rows)?;
        }
    }
    Ok(())
}

fn write_classes(classes: &Classes, connection: &Connection) -> rusqlite::Result<()> {
    let all = classes.ranges.iter().zip(&classes.always).enumerate();
    for (id, (ranges, is_always)) in all.skip(1) {
        insert(connection, "eq_classes", [(id, is_always)])?;
        insert(connection, "eq_class_step", class_ranges(id, ranges))?;
    }
    Ok(())
}

/// One row for each variable; tiles are numbered through.
fn rows(programs: &Programs, connection: &Connection) -> rusqlite::Result<()> {
    let mut first = 0;
    let row = |&Row { name, variable }: &Row| {
        let is_user = programs.variables.names[name].is_user;
        variable_tables::Row {
            name,
            suffix: if is_user { "0" } else { "" }.to_owned(),
            is_user,
            unlowered: is_user.then_some(name),
            category: variable.category,
            is_always: variable.class == variables::ALWAYS,
            variable,
        }
    };
    let tiles = listed(programs).flat_map(|(_, ipu)| &ipu.tiles);
    for (rows, tile) in tiles.zip(0..) {
        let rows: Vec<_> = rows.iter().map(row).collect();
        variables_of_tile((tile, first), &rows, false, connection)?;
        first += rows.len() as u32;
    }
    Ok(())
}
