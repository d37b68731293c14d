//! Searches: best splits, plans and advice.

mod advice;
mod bert_large;
mod every_configuration;
mod facts;
mod micro_batch;
mod objectives;
mod pipelines;
mod plan;
mod state;
mod ties;
