//! The workbench's page, as a person sees it.

mod loads;
