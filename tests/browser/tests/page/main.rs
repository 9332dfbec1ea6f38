//! The workbench's page, as a person sees it.

mod candidates;
mod loads;
mod looks;
mod settings;
mod stories;
mod ticks;
mod words;
