//! What the function returns: its type, and its value where there is no lease to return one under.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Type, parse_quote_spanned};

use super::Expansion;
use crate::args::OnError;
use crate::item::Parameter;
use crate::mentions::{mentions, names};
use crate::shape::Kind;

impl<'a> Expansion<'a> {
    /// What the future comes to, or the stream's items, as a type that may be written inside a body.
    pub(super) fn output(&self) -> Type {
        match (&self.shape.output, &self.shape.returned, self.shape.kind) {
            (Some(output), ..) => output.clone(),
            (None, None, _) => syn::parse_quote!(_),
            (None, Some(returned), kind) => {
                // What is wrong with it is shown where it stands.
                let span = Span::mixed_site().located_at(returned.span());
                match kind {
                    Kind::Future => parse_quote_spanned! {span=>
                        <#returned as ::core::future::Future>::Output
                    },
                    Kind::Stream => parse_quote_spanned! {span=>
                        <#returned as __leader::Stream>::Item
                    },
                }
            }
        }
    }

    pub(super) fn when_failing(&self) -> TokenStream {
        let choice = match self.args.on_error {
            None | Some(OnError::Return) => quote_here!(Fail),
            Some(OnError::Skip) => quote_here!(Skip),
            Some(OnError::Run) => quote_here!(Run),
        };
        quote_here!(__leader::WhenFailing::#choice)
    }

    /// What is returned when `skipped`.
    pub(super) fn skipped(&self) -> TokenStream {
        let output = self.output();
        let Some(given) = &self.args.skipped else {
            return quote_here! { <#output as __leader::FromSkip>::from_skip(skipped) };
        };
        let copies = self.in_skipped().map(|parameter| {
            let Parameter {
                conditions, name, ..
            } = parameter;
            let copy = self.copy_in_skipped(name);
            quote_here! { #(#conditions)* let #name = #copy.get(); }
        });
        quote_here! { { let _ = skipped; #(#copies)* #given } }
    }

    /// What is returned upon an `error`.
    pub(super) fn failed(&self) -> TokenStream {
        let output = self.output();
        if let None | Some(OnError::Return) = self.args.on_error {
            return quote_here! { <#output as __leader::FromLeaderError>::from_leader_error(error) };
        }
        // Of what is opaque nobody can know whether it can say an error: as if it could not.
        let says_error = (!is_opaque(&output)).then(|| quote_here! { SaysError as _, });
        let skipped = self.skipped();
        quote_here! {
            {
                use __leader::{#says_error LogsError as _};
                match (&__leader::Probe::<#output>::new()).failed(error) {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(skipped) => #skipped,
                }
            }
        }
    }

    /// The copies that outlive the call: for the body, and for the value that is returned when it was skipped.
    pub(super) fn copies(&self) -> TokenStream {
        let in_skipped = self
            .in_skipped()
            .map(|parameter| (parameter, self.copy_in_skipped(parameter.name)))
            .filter(|(parameter, copy)| parameter.name != copy);
        let in_body = self
            .brief
            .iter()
            .map(|parameter| (parameter, parameter.name.clone()));
        let copies = in_skipped.chain(in_body).map(|(parameter, copy)| {
            let Parameter {
                conditions, name, ..
            } = parameter;
            quote_here! { #(#conditions)* let #copy = __leader::Copied::of(#name); }
        });
        copies.collect()
    }

    /// The copied parameters that `skipped` uses.
    fn in_skipped(&self) -> impl Iterator<Item = &Parameter<'a>> {
        let skipped = self.args.skipped.as_ref().map(ToTokens::to_token_stream);
        self.brief.iter().filter(move |parameter| {
            skipped
                .as_ref()
                .is_some_and(|skipped| mentions(skipped.clone(), parameter.name).is_some())
        })
    }

    /// The copy that `skipped` uses: the body's, or one more where it may be asked for after the body, which has taken
    /// its own along.
    fn copy_in_skipped(&self, name: &Ident) -> Ident {
        match self.args.on_error {
            None | Some(OnError::Return) => name.clone(),
            Some(OnError::Skip | OnError::Run) => {
                quote::format_ident!("{name}_when_skipped", span = Span::mixed_site())
            }
        }
    }
}

/// Whether a type says nothing of what it is, but in the error of a `Result`.
fn is_opaque(ty: &Type) -> bool {
    match ty {
        Type::Infer(_) => true,
        Type::Path(path) => {
            let is_result = path
                .path
                .segments
                .last()
                .is_some_and(|last| last.ident == "Result");
            !is_result && names(ty.to_token_stream(), "_")
        }
        _ => names(ty.to_token_stream(), "_"),
    }
}
