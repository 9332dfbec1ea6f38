//! The programs stand in the folders beside `src`. This library has nothing but the programs of the README, and of a page
//! of the documentation that needs a crate of its own, as documentation tests: what is written there compiles and runs.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../leader-core/src/axum_response.md")]
struct AxumResponse;
