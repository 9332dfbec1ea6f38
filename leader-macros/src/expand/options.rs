//! The options of the lease: built once for the function where they are literals, else at each call.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use syn::LitStr;

use super::Expansion;
use crate::args::{self, Name, OnLost, Slots, Time};
use crate::shape::Wrap;

impl Expansion<'_> {
    /// `let options = ..`, a `Result`.
    pub(super) fn options(&self) -> TokenStream {
        let pattern = self.pattern();
        if let Some(options) = &self.args.options {
            let labelled = match (pattern, self.shape.wrap) {
                (Some(pattern), _) => {
                    quote_here! { __leader::labelled(options, #pattern) }
                }
                (None, Wrap::Async) => quote_here! { options },
                // Kept until the first poll, when the call is over.
                (None, Wrap::Bare | Wrap::Boxed) => {
                    quote_here! { ::core::clone::Clone::clone(options) }
                }
            };
            return quote_here! {
                let options: &__leader::LeaseOptions = #options;
                let options = ::core::result::Result::Ok(#labelled);
            };
        }
        let Settings { calls, is_fixed } = self.settings();
        let label = pattern.map(|pattern| quote_here!(.name_pattern(#pattern)));
        if is_fixed {
            quote_here! {
                let options = {
                    static OPTIONS: __leader::Options =
                        __leader::Options::new(|options| options #calls #label);
                    OPTIONS.get()
                };
            }
        } else {
            quote_here! { let options = __leader::LeaseOptions::builder() #calls #label .build(); }
        }
    }

    fn settings(&self) -> Settings {
        let args = self.args;
        let mut settings = Settings {
            calls: TokenStream::new(),
            is_fixed: true,
        };
        settings.time("wait", args.wait.as_ref());
        settings.time("lease", args.lease.as_ref());
        settings.time("min_lease", args.min_lease.as_ref());
        settings.time("max_tenure", args.max_tenure.as_ref());
        if let Some(flag) = &args.auto_extend {
            settings.is_fixed &= args::literal(flag).is_some();
            settings.calls.extend(quote_here!(.auto_extend(#flag)));
        }
        match &args.on_lost {
            None => {}
            Some(OnLost::Cancel) => settings
                .calls
                .extend(quote_here!(.on_lost(__leader::OnLost::Cancel))),
            Some(OnLost::Notify) => settings
                .calls
                .extend(quote_here!(.on_lost(__leader::OnLost::Notify))),
            Some(OnLost::Expr(expr)) => {
                settings.is_fixed = false;
                settings.calls.extend(quote_here!(.on_lost(#expr)));
            }
        }
        match &args.slots {
            None => {}
            Some(Slots::Literal(slots)) => {
                settings.calls.extend(quote_here!(.slots(#slots)));
            }
            Some(Slots::Expr(expr)) => {
                settings.is_fixed = false;
                settings.calls.extend(quote_here!(.slots(#expr)));
            }
        }
        settings
    }

    /// The label of spans, where the name is filled in from data.
    fn pattern(&self) -> Option<LitStr> {
        match &self.args.name {
            Some(Name::Literal(literal, pattern)) if !pattern.placeholders.is_empty() => {
                Some(literal.clone())
            }
            Some(Name::Expr(syn::Expr::Macro(call))) if call.mac.path.is_ident("format") => {
                let parse = |input: syn::parse::ParseStream<'_>| {
                    let literal = input.parse::<LitStr>()?;
                    input.parse::<TokenStream>()?;
                    Ok(literal)
                };
                syn::parse::Parser::parse2(parse, call.mac.tokens.clone()).ok()
            }
            _ => None,
        }
    }
}

/// The builder's calls, and whether they are the same for every call of the function.
struct Settings {
    calls: TokenStream,
    is_fixed: bool,
}

impl Settings {
    fn time(&mut self, key: &str, time: Option<&Time>) {
        let key = Ident::new(key, Span::mixed_site());
        match time {
            None => {}
            Some(Time::Literal(time, _)) => {
                let seconds = Literal::u64_unsuffixed(time.as_secs());
                let nanos = Literal::u32_unsuffixed(time.subsec_nanos());
                self.calls
                    .extend(quote_here!(.#key(::core::time::Duration::new(#seconds, #nanos))));
            }
            Some(Time::Expr(expr)) => {
                self.is_fixed = false;
                self.calls.extend(quote_here!(.#key(#expr)));
            }
        }
    }
}
