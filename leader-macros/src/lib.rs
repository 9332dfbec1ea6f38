//! The attribute `#[leader_election]` of [leader-core](https://docs.rs/leader-core): it parses, checks and expands.
//! What the expansion does is in leader-core; use the attribute from there.

mod args;
mod check;
mod duration;
mod expand;
mod item;
mod name;
mod shape;
mod suggest;

use proc_macro::TokenStream;

/// Runs a function only as the leader.
#[proc_macro_attribute]
pub fn leader_election(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(args.into(), &item.into()).into()
}
