//! The attribute `#[leader_election]` of [leader-core](https://docs.rs/leader-core): it parses, checks and expands.
//! What the expansion does is in leader-core; use the attribute from there.

#![allow(
    clippy::large_enum_variant,
    reason = "expressions are large where spans know their place, and there are a few of them"
)]

mod args;
mod check;
mod duration;
mod expand;
#[cfg(test)]
mod fuzzing;
mod item;
mod lifetimes;
mod mentions;
mod name;
mod shape;
mod suggest;

use proc_macro::TokenStream;

// Documented where it is re-exported, so that the page can link to what it is about.
#[allow(missing_docs)]
#[proc_macro_attribute]
pub fn leader_election(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(args.into(), &item.into()).into()
}
