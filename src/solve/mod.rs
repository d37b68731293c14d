//! Range costs to a plan: which layers stand in which pipeline stage.
