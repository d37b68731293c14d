//! The best split, and the program that is written for other solvers.

mod facts;
mod lp_files;
mod objectives;
mod pipelines;
mod plan;
mod state;
mod ties;
