//! The programs stand in the folders beside `src`. This library has nothing but the programs of the README, as
//! documentation tests: what is written there compiles and runs.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
